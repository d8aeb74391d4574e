import {afterEach, expect, test, vi} from 'vitest';
import {LOCAL_TARGET} from '../../src/ops/config/config.ts';
import {type Facts, NO_FACTS} from '../../src/ops/facts.ts';
import {bad, good, type Outcome} from '../../src/ops/outcome.ts';
import {type Answer, NO_HINTS, type ProbeId} from '../../src/ops/probes/probe.ts';
import {type Catalogue, createPoller, type Poller} from '../../src/state/poller.ts';

const answer = (stdout: string): Outcome<Answer> => good({status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)});
const running: Poller[] = [];

afterEach(() => {
	for (const poller of running.splice(0)) poller.stop();
	vi.useRealTimers();
});

/** A catalogue in which only `mounts` asks anything; its value is the text itself. */
function poll(ask: () => Promise<Outcome<Answer>>) {
	vi.useFakeTimers();
	const silent = (id: ProbeId) => ({
		id,
		lane: 'files',
		everyMs: 1_000,
		limitMs: 500,
		capBytes: 10,
		script: () => null,
		parse: () => null,
	});
	const probes = Object.fromEntries(Object.keys(NO_FACTS).map(id => [id, silent(id as ProbeId)]));
	const mounts = {...silent('mounts'), script: () => 'look', parse: (given: Answer) => given.stdout};
	let facts: Facts = NO_FACTS;
	let work = 0;
	const poller = createPoller({
		target: () => LOCAL_TARGET,
		probes: {...probes, mounts} as unknown as Catalogue,
		ask,
		askOuter: ask,
		wants: () => true,
		hints: () => NO_HINTS,
		facts: () => facts,
		onFacts(next) {
			facts = next;
		},
		onWork(change) {
			work += change;
		},
		clock: () => Date.now(),
	});
	running.push(poller);
	return {
		poller,
		value: () => facts.mounts?.last?.value as unknown,
		failing: () => facts.mounts?.failing?.failure.kind,
		work: () => work,
	};
}

test('a slow look is never asked twice at once, and the next starts after it ended', async () => {
	let open = 0;
	let most = 0;
	let asked = 0;
	const {poller} = poll(async () => {
		asked++;
		most = Math.max(most, ++open);
		await new Promise(resolve => setTimeout(resolve, 5_000));
		open--;
		return answer('x');
	});
	poller.start();
	await vi.advanceTimersByTimeAsync(29_000);
	expect({most, asked}).toEqual({most: 1, asked: 5});
});

test('looking now, while a look is out, waits for one that began after the wish', async () => {
	let world = 'before';
	const {poller, value} = poll(async () => {
		const seen = world;
		await new Promise(resolve => setTimeout(resolve, 300));
		return answer(seen);
	});
	poller.start();
	await vi.advanceTimersByTimeAsync(100);
	world = 'after';
	const looked = poller.look(['mounts']).then(value);
	const twice = poller.look(['mounts']).then(value);
	await vi.advanceTimersByTimeAsync(700);
	expect([await looked, await twice]).toEqual(['after', 'after']);
});

test('a host that does not answer is asked ever more rarely, up to a minute, and at once again when told', async () => {
	let asked = 0;
	let silent = true;
	const {poller, failing, value} = poll(async () => {
		asked++;
		return silent ? bad({kind: 'timeout', afterMs: 500}) : answer('back');
	});
	poller.start();
	await vi.advanceTimersByTimeAsync(60_000);
	expect(asked).toBeLessThanOrEqual(7);
	expect(failing()).toBe('timeout');
	silent = false;
	const looked = poller.look(['mounts']);
	await vi.advanceTimersByTimeAsync(10);
	await looked;
	expect(value()).toBe('back');
	const before = asked;
	await vi.advanceTimersByTimeAsync(3_000);
	expect(asked).toBe(before + 3);
});

test('work in flight goes back to nothing', async () => {
	const {poller, work} = poll(async () => answer('x'));
	poller.start();
	await vi.advanceTimersByTimeAsync(50);
	expect(work()).toBe(0);
});
