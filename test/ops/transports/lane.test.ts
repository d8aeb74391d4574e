import {afterEach, expect, test} from 'vitest';
import {type Lane, openLane} from '../../../src/ops/transports/lane.ts';
import {localTransport} from '../../../src/ops/transports/local.ts';
import {throughTransport} from '../../../src/ops/transports/through.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';

const LIMITS = {limitMs: 5_000, capBytes: 4 * 1024 * 1024};
const open: Lane[] = [];
const lane = (transport = localTransport(SYSTEM_ENVIRONMENT)) => {
	const made = openLane(transport);
	open.push(made);
	return made;
};
afterEach(() => {
	for (const each of open.splice(0)) each.close();
});

const say = async (on: Lane, script: string) => {
	const outcome = await on.request(script, LIMITS);
	if (!outcome.ok) return outcome.failure;
	const {status, stdout, stderr} = outcome.value;
	return {status, stdout, stderr};
};

test.each([
	['nothing', '', 0, ''],
	['text without a last newline', 'printf abc', 0, 'abc'],
	['text with a last newline', 'echo abc', 0, 'abc\n'],
	['its own status', 'echo a; exit 7', 7, 'a\n'],
	['a script that replaces its shell', 'exec echo gone', 0, 'gone\n'],
	['a script that reads its input gets end of file', 'cat; read x || echo empty', 0, 'empty\n'],
	['an open quote', "echo 'x", 2, ''],
	['a closing brace', '} ; echo )', 2, ''],
	['a comment at the end', 'echo a # b', 0, 'a\n'],
	['a here-document', "cat <<'E'\n$x\nE", 0, '$x\n'],
	['a marker of its own making', 'echo @@0123456789abcdefe 0', 0, '@@0123456789abcdefe 0\n'],
])('a lane answers %s', async (_name, script, status, stdout) => {
	const one = lane();
	const answer = await say(one, script);
	expect(answer).toMatchObject({status, stdout});
	expect(await say(one, 'echo still here')).toEqual({status: 0, stdout: 'still here\n', stderr: ''});
});

test('the two streams are kept apart and binary comes whole', async () => {
	const one = lane();
	expect(await say(one, 'echo out; echo err >&2')).toEqual({status: 0, stdout: 'out\n', stderr: 'err\n'});
	const outcome = await one.request(
		'head -c 1000000 /dev/urandom | tee /dev/fd/3 3>/dev/null | cat; printf "\\0\\377"',
		LIMITS,
	);
	expect(outcome.ok && outcome.value.bytes.length).toBe(1_000_002);
	expect(outcome.ok && [...outcome.value.bytes.subarray(-2)]).toEqual([0, 255]);
});

test('nothing of the environment gets in, and roots come from the route', async () => {
	const one = lane(localTransport({...SYSTEM_ENVIRONMENT, proc: '/somewhere/proc'}));
	process.env.RELIGHT_TEST_LEAK = 'x';
	expect(await say(one, 'echo "$PROC $LC_ALL ${RELIGHT_TEST_LEAK-clean}"')).toMatchObject({
		stdout: '/somewhere/proc C clean\n',
	});
	delete process.env.RELIGHT_TEST_LEAK;
});

test('over the limit the shell is abandoned, what came is kept, and the next request gets a new shell', async () => {
	const one = lane();
	const outcome = await one.request('echo started; sleep 20', {...LIMITS, limitMs: 300});
	expect(outcome).toEqual({ok: false, failure: {kind: 'timeout', afterMs: 300, stdout: 'started\n'}});
	await new Promise(resolve => setTimeout(resolve, 1_100));
	expect(await say(one, 'echo back')).toMatchObject({stdout: 'back\n'});
});

test('over the cap the shell is abandoned at once, never drained', async () => {
	const one = lane();
	const startedAt = Date.now();
	expect(await one.request('yes', {limitMs: 20_000, capBytes: 100_000})).toEqual({
		ok: false,
		failure: {kind: 'overflow', limitBytes: 100_000},
	});
	expect(Date.now() - startedAt).toBeLessThan(10_000);
});

test('a shell that dies under a request is an unknown outcome, not a success', async () => {
	const one = lane();
	const failure = await say(one, 'kill -9 $$');
	expect(failure).toEqual({kind: 'lost', detail: 'shell killed by SIGKILL'});
});

test('a shell that died between requests is replaced without a word', async () => {
	const one = lane();
	await say(one, '(sleep 0.05; kill -9 $$) >/dev/null 2>&1 &');
	await new Promise(resolve => setTimeout(resolve, 400));
	expect(await say(one, 'echo new')).toMatchObject({status: 0, stdout: 'new\n'});
});

test('noise outside the markers is dropped and counted', async () => {
	const one = lane();
	await say(one, '(sleep 0.1; echo late noise) &');
	await new Promise(resolve => setTimeout(resolve, 300));
	expect(await say(one, 'echo answer')).toMatchObject({stdout: 'answer\n'});
	expect(one.noiseBytes).toBe('late noise\n'.length);
});

test('through is the same contract behind a prefix', async () => {
	const outer = localTransport(SYSTEM_ENVIRONMENT);
	const one = lane(throughTransport(outer, ['nice', '-n', '5', '--'], SYSTEM_ENVIRONMENT));
	expect(await say(one, `nice; echo 'it'"'"'s fine'`)).toEqual({status: 0, stdout: "5\nit's fine\n", stderr: ''});
});

/** Case: a time limit on a child did not bound the wait, since a grandchild kept the pipe. */
test.each([
	['a grandchild that keeps the pipe', 'echo started; sleep 30 & wait'],
	['a child that ignores TERM', 'echo started; trap "" TERM; sleep 30; sleep 30'],
	['a grandchild in a session of its own', 'echo started; setsid sleep 30'],
])('%s returns within its limit', async (_name, script) => {
	const startedAt = Date.now();
	const outcome = await lane().request(script, {...LIMITS, limitMs: 500});
	expect(outcome).toEqual({ok: false, failure: {kind: 'timeout', afterMs: 500, stdout: 'started\n'}});
	expect(Date.now() - startedAt).toBeLessThan(5_000);
});
