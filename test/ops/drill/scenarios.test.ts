import {describe, expect, test} from 'vitest';
import {takeScript} from '../../../src/ops/act-lock.ts';
import {show} from '../../../src/ops/command.ts';
import {FAULTS, type FaultId} from '../../../src/ops/drill/faults.ts';
import {Received, shellWords} from '../../../src/ops/drill/received.ts';
import {expectedEnd, objectionTo, randomFaults, SCENARIOS} from '../../../src/ops/drill/scenarios.ts';
import {DEFINE_MARK} from '../../../src/ops/formats/sections.ts';
import {frame, laneCommand} from '../../../src/ops/transports/lane.ts';

describe('the table', () => {
	test('every fault has a scenario of its own, and no two have one name', () => {
		const alone = SCENARIOS.flatMap(({faults}) => (faults.length === 1 ? faults : []));
		expect(alone.toSorted()).toEqual(FAULTS.map(({id}) => id).toSorted());
		expect(new Set(SCENARIOS.map(({name}) => name)).size).toBe(SCENARIOS.length);
	});

	test('a fault that nothing gets past makes the end a refusal, in whatever company', () => {
		expect(expectedEnd([])).toEqual({outcome: 'recovered'});
		expect(expectedEnd(['timer', 'hook'])).toEqual({outcome: 'recovered'});
		expect(expectedEnd(['timer', 'hung-mount'])).toMatchObject({outcome: 'refused'});
	});

	test('a refusal that names another cause is not the expected one', () => {
		const expected = expectedEnd(['port-taken', 'disk-full']);
		const because = 'port 8000 is taken by python3 (pid 31)';
		expect(objectionTo({outcome: 'refused', because, acts: 0}, expected)).toBe(null);
		expect(objectionTo({outcome: 'refused', because: '/data does not answer', acts: 0}, expected)).toContain(
			'does not name',
		);
		expect(objectionTo({outcome: 'recovered', because: null, acts: 9}, expected)).toBe(
			'recovered where refused was expected',
		);
	});
});

test('a refusal over what could be seen at once, after something was done, is not the expected one', () => {
	const because = 'neither patch nor hook is active';
	const late = {outcome: 'refused' as const, because, acts: 4};
	expect(objectionTo(late, expectedEnd(['patch-lost']))).toBe(
		'it acted 4 times before it refused what could be seen at once',
	);
	expect(objectionTo({...late, acts: 0}, expectedEnd(['patch-lost']))).toBe(null);
	const hung = {...late, because: 'no progress in phase loading 5/64 shards for 11 s'};
	expect(objectionTo(hung, expectedEnd(['server-hangs']))).toBe(null);
});

describe('random faults', () => {
	const drawn = Array.from({length: 500}, (_, seed) => randomFaults(seed));

	test('are the same for the same seed: one to three, each once', () => {
		expect(randomFaults(7)).toEqual(drawn[7]);
		expect(new Set(drawn.map(({length}) => length))).toEqual(new Set([1, 2, 3]));
		for (const faults of drawn) expect(new Set(faults).size).toBe(faults.length);
	});

	test('leave no fault out, and no two together of which one hides the other', () => {
		expect(new Set(drawn.flat())).toEqual(new Set(FAULTS.filter(({alone}) => !alone).map(({id}) => id)));
		const both = (one: FaultId, other: FaultId) => drawn.filter(each => each.includes(one) && each.includes(other));
		expect([...both('hook', 'patch-lost'), ...both('server-dies', 'server-hangs')]).toEqual([]);
	});
});

describe('what a box was told', () => {
	const environment = {path: '/bin', home: '/root', proc: '/p', dev: '/d', sys: '/s', etc: '/e'};
	const carried = (command: readonly string[]) =>
		`exec ${show(['sh', '-c', 'PATH=$PATH:/sbin; exec "$@"', 'sh', 'pct', 'exec', '129', '--', ...command])}`;
	const lane = (...scripts: string[]) => {
		const received = new Received();
		received.command(carried(laneCommand(environment)));
		const listen = received.listen();
		// As it comes: in pieces that end anywhere.
		const bytes = Buffer.from(scripts.map(script => frame(script, '@@1f')).join(''));
		for (let at = 0; at < bytes.length; at += 7) listen(bytes.subarray(at, at + 7));
		return received.acts;
	};

	test('an act is heard whole, with its quotes and lines', () => {
		const script = `printf '%s\\n' "it's" >/x\nsystemctl daemon-reload; echo ü`;
		expect(lane(script, 'kill 7')).toEqual([script, 'kill 7']);
	});

	test('looks, greetings and the lock are no acts', () => {
		const actor = {token: 't', operator: 'o', from: 'f', operation: 'recover', since: 1};
		expect(lane('echo relight', `${DEFINE_MARK}\ncat /x`, takeScript(actor))).toEqual([]);
	});

	test('a file that is sent comes as a command with its script, on either route', () => {
		const script = "cat >/tmp/x && mv /tmp/x '/tmp/y z'";
		const received = new Received();
		received.command(carried([...laneCommand(environment), '-c', script]));
		received.command(`exec ${show([...laneCommand(environment), '-c', script])}`);
		received.command('reboot');
		expect(received.acts).toEqual([script, script, 'reboot']);
	});

	test('words of a line are read as a shell reads them', () => {
		expect(shellWords(show(['a', "b'c d", '', '$x']))).toEqual(['a', "b'c d", '', '$x']);
	});
});
