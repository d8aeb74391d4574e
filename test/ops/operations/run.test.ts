import {createHash} from 'node:crypto';
import {expect, test} from 'vitest';
import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import {NO_FACTS} from '../../../src/ops/facts.ts';
import type {Plan, RunEvent, Step, Verdict} from '../../../src/ops/operations/operation.ts';
import {type RunTools, runPlan} from '../../../src/ops/operations/run.ts';
import {bad, good, type Outcome} from '../../../src/ops/outcome.ts';
import type {Answer} from '../../../src/ops/probes/probe.ts';
import type {Host} from '../../../src/ops/transports/host.ts';
import type {Sending} from '../../../src/ops/transports/pour.ts';

const ok = (stdout = ''): Outcome<Answer> => good({status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)});
const exit = (status: number, stderr: string): Outcome<Answer> =>
	good({status, stdout: '', stderr, bytes: Buffer.alloc(0)});
const LOST = bad({kind: 'lost', detail: 'no exit status came'});
const run = (id: string): Step => ({kind: 'run', id, says: id, script: `do ${id}`, limitMs: 1_000});
const wait = (verdicts: Verdict[], limitMs = 1_000, grace = false): Step => ({
	kind: 'wait',
	id: 'wait',
	says: 'until it is so',
	looks: ['mounts'],
	limitMs,
	grace,
	until: () => verdicts.shift() ?? {state: 'pending', words: 'still not'},
});
const planOf = (steps: Step[]): Plan => ({
	operation: 'stop-service',
	title: 'a plan',
	tier: 1,
	confirmWord: '',
	targets: [],
	excluded: [],
	steps,
	warnings: [],
	inverse: null,
});
const MET: Verdict = {state: 'met', words: 'it is so'};

/** A host that answers from a list and fails on a question too many. */
function scripted(answers: Outcome<Answer>[], change: Partial<RunTools> = {}) {
	const sent: string[] = [];
	const written: string[] = [];
	const events: RunEvent[] = [];
	let now = 0;
	const host = {
		ask: async (_lane: string, script: string) => {
			sent.push(script);
			const answer = answers.shift();
			if (!answer) throw new Error(`unexpected: ${script}`);
			return answer;
		},
	} as unknown as Host;
	const tools: RunTools = {
		host,
		look: async () => {
			now += 400;
		},
		situation: () => ({target: LOCAL_TARGET, facts: NO_FACTS, nowMs: now}),
		emit: event => events.push(event),
		intend: async (_words, command) => {
			written.push(command);
		},
		outcome: async () => {},
		readFile: async () => Buffer.from('content'),
		signal: new AbortController().signal,
		clock: () => now,
		pauseMs: 0,
		...change,
	};
	return {
		tools,
		sent,
		written,
		states: () => events.flatMap(event => (event.type === 'step' ? [`${event.index} ${event.state}`] : [])),
		last: () => events.at(-1),
	};
}

test('what was written down is what is sent, step by step, and a look ends it', async () => {
	const host = scripted([ok(), ok()]);
	expect(await runPlan(planOf([run('a'), run('b'), wait([MET])]), host.tools)).toBe('done');
	expect(host.sent).toEqual(['do a', 'do b']);
	expect(host.written).toEqual(host.sent);
	expect(host.states()).toEqual(['0 running', '0 done', '1 running', '1 done', '2 running', '2 done']);
});

test('a failed step ends the plan with its words, and nothing after it is sent', async () => {
	const host = scripted([exit(3, 'Unit x not loaded.')]);
	expect(await runPlan(planOf([run('a'), run('b')]), host.tools)).toBe('failed');
	expect(host.sent).toEqual(['do a']);
	expect(host.last()).toMatchObject({type: 'ended', outcome: 'failed', words: 'exit 3: Unit x not loaded.'});
});

test('an act whose link was lost is not repeated; when the look shows it done, it is done', async () => {
	const host = scripted([LOST]);
	expect(await runPlan(planOf([run('a'), wait([{state: 'pending', words: 'x'}, MET])]), host.tools)).toBe('done');
	expect(host.sent).toEqual(['do a']);
	expect(host.states()[1]).toBe('0 unknown');
});

test('an act whose link was lost, and that no look can prove, stays unknown', async () => {
	const host = scripted([LOST, ok()]);
	expect(await runPlan(planOf([run('a'), run('b')]), host.tools)).toBe('unknown');
});

test('what fails after an act of unknown outcome is unknown, and says both', async () => {
	const host = scripted([LOST, exit(1, 'no process')]);
	expect(await runPlan(planOf([run('a'), run('b'), run('c')]), host.tools)).toBe('unknown');
	expect(host.sent).toEqual(['do a', 'do b']);
	expect(host.last()).toMatchObject({
		words: expect.stringMatching(/^exit 1: no process; before it: outcome unknown: /),
	});
});

test('exit status 0 proves nothing: what does not come true in time failed', async () => {
	const host = scripted([ok()]);
	expect(await runPlan(planOf([run('a'), wait([])]), host.tools)).toBe('failed');
	expect(host.last()).toMatchObject({words: 'not so after 1 s: still not'});
});

test('a grace period is no proof and no failure', async () => {
	const host = scripted([ok(), ok()]);
	expect(await runPlan(planOf([run('a'), wait([], 1_000, true), run('b'), wait([MET])]), host.tools)).toBe('done');
});

test('what cannot be written down first is not done', async () => {
	const host = scripted([], {
		intend: async () => {
			throw new Error('ENOSPC: no space left on device');
		},
	});
	expect(await runPlan(planOf([run('a')]), host.tools)).toBe('failed');
	expect(host.sent).toEqual([]);
});

test('stopped by the operator: no further step, and what was started is not undone', async () => {
	const abort = new AbortController();
	const host = scripted([ok()], {signal: abort.signal});
	abort.abort();
	expect(await runPlan(planOf([run('a')]), host.tools)).toBe('cancelled');
	expect(host.sent).toEqual([]);
});

test('a file that is not the one the configuration names is not sent', async () => {
	const host = scripted([]);
	const send: Step = {
		kind: 'send',
		id: 'send',
		says: 'send',
		source: '/x',
		sha256: 'f'.repeat(64),
		script: 'cat',
		limitMs: 1_000,
	};
	expect(await runPlan(planOf([send]), host.tools)).toBe('failed');
	expect(host.last()).toMatchObject({words: expect.stringContaining('is not the file the configuration names')});
});

test('a file that takes long is told of as it goes, in tenths and no oftener than each second', async () => {
	const content = Buffer.alloc(20_000_000);
	let now = 0;
	const send = async (_script: string, input: Buffer, _limitMs: number, {pieceBytes, onSent}: Sending = {}) => {
		expect(pieceBytes).toBe(9);
		for (let sent = 0; sent <= input.length; sent += 250_000) {
			onSent?.(sent);
			now += 100;
		}
		return ok(`${createHash('sha256').update(content).digest('hex')}  -\n`);
	};
	const events: RunEvent[] = [];
	const {tools} = scripted([], {
		host: {send} as unknown as Host,
		emit: event => void events.push(event),
		readFile: async () => content,
		clock: () => now,
	});
	const step: Step = {
		kind: 'send',
		id: 'send',
		says: 'send',
		source: '/x',
		sha256: null,
		pieceBytes: 9,
		script: 'cat',
		limitMs: 1_000,
	};
	expect(await runPlan(planOf([step, wait([MET])]), tools)).toBe('done');
	expect(events.flatMap(event => (event.type === 'step' && event.index === 0 ? [event.words] : []))).toEqual([
		'send',
		'10 % of 20.0 MB sent',
		'20 % of 20.0 MB sent',
		'30 % of 20.0 MB sent',
		'50 % of 20.0 MB sent',
		'60 % of 20.0 MB sent',
		'70 % of 20.0 MB sent',
		'80 % of 20.0 MB sent',
		'sent; the host checks it',
		expect.stringMatching(/^20000000 bytes, sha256 /),
	]);
});

test('a program goes to its script by standard input, on a channel of its own, and its last line is what is told', async () => {
	const got: string[] = [];
	const send = async (script: string, input: Buffer) => {
		got.push(script, input.toString());
		return ok('first\nall is right\n');
	};
	const events: RunEvent[] = [];
	const {tools, written} = scripted([], {host: {send} as unknown as Host, emit: event => void events.push(event)});
	expect(await runPlan(planOf([{...run('python3 -'), program: 'print()'} as Step, wait([MET])]), tools)).toBe('done');
	expect(got).toEqual(['do python3 -', 'print()']);
	expect(written).toEqual(['do python3 -']);
	expect(events).toContainEqual(expect.objectContaining({type: 'step', state: 'done', words: 'all is right'}));
});
