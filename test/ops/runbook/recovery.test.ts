import {expect, test} from 'vitest';
import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import {NO_FACTS} from '../../../src/ops/facts.ts';
import type {Plan, RunEvent, Situation, Verdict} from '../../../src/ops/operations/operation.ts';
import type {RunTools} from '../../../src/ops/operations/run.ts';
import {good} from '../../../src/ops/outcome.ts';
import {planRecovery, type Recovery, runRecovery} from '../../../src/ops/runbook/run-recovery.ts';
import type {Check} from '../../../src/ops/runbook/runbook.ts';
import type {Host} from '../../../src/ops/transports/host.ts';

/** A world of two broken things; a command `mend X` mends X. */
function world() {
	const broken = new Set(['a', 'b']);
	const command = {a: 'mend a', b: 'mend b'};
	const check = (name: 'a' | 'b'): Check => ({
		id: name,
		says: `${name} is well`,
		mends: 'stop-service',
		looks: ['mounts'],
		settleMs: 0,
		holds: () => (broken.has(name) ? {state: 'pending', words: 'broken'} : {state: 'met', words: 'well'}) as Verdict,
		plans: () => [planFor(name, command[name])],
	});
	const sent: string[] = [];
	const events: RunEvent[] = [];
	const tools: RunTools = {
		host: {
			ask: async (_lane: string, script: string) => {
				sent.push(script);
				broken.delete(script.replace('mend ', ''));
				return good({status: 0, stdout: '', stderr: '', bytes: Buffer.alloc(0)});
			},
		} as unknown as Host,
		look: async () => {},
		situation: (): Situation => ({target: LOCAL_TARGET, facts: NO_FACTS, nowMs: 0}),
		emit: event => events.push(event),
		intend: async () => {},
		outcome: async () => {},
		readFile: async () => Buffer.alloc(0),
		signal: new AbortController().signal,
		clock: () => Date.now(),
		pauseMs: 0,
	};
	const checks = [check('a'), check('b')];
	const recovery = planRecovery(checks, tools.situation());
	if ('refused' in recovery) throw new Error(recovery.refused);
	return {broken, command, checks, recovery: recovery as Recovery, sent, events, tools};
}

const planFor = (name: string, script: string): Plan => ({
	operation: 'stop-service',
	title: `mend ${name}`,
	tier: 2,
	confirmWord: name,
	targets: [],
	excluded: [],
	steps: [{kind: 'run', id: `mend-${name}`, says: `mend ${name}`, script, limitMs: 1_000}],
	warnings: [],
	inverse: null,
});

test('each check is mended in order, by the commands that were shown, and seen to hold', async () => {
	const {recovery, tools, sent, events} = world();
	expect([...recovery.scripts]).toEqual(['mend a', 'mend b']);
	expect(await runRecovery(recovery, tools)).toBe('done');
	expect(sent).toEqual(['mend a', 'mend b']);
	const last = new Map(events.flatMap(event => (event.type === 'step' ? [[event.index, event.state]] : [])));
	expect([...last]).toEqual([
		[0, 'done'],
		[1, 'done'],
		[2, 'done'],
		[3, 'done'],
	]);
});

test('a command that was not shown is not run: the recovery stops there and asks again', async () => {
	const {recovery, tools, sent, command} = world();
	command.b = 'mend b --force';
	expect(await runRecovery(recovery, tools)).toBe('refused');
	expect(sent).toEqual(['mend a']);
});

test('what mended itself meanwhile is left alone', async () => {
	const {recovery, tools, sent, broken, events} = world();
	broken.delete('a');
	expect(await runRecovery(recovery, tools)).toBe('done');
	expect(sent).toEqual(['mend b']);
	expect(events).toContainEqual(expect.objectContaining({type: 'step', index: 1, state: 'skipped'}));
});

test('a check that cannot be told is not built upon', () => {
	const {checks, tools} = world();
	const blind = {...checks[0]!, holds: () => ({state: 'failed', words: 'not seen'}) as Verdict};
	expect(planRecovery([blind], tools.situation())).toEqual({refused: 'a is well: not seen'});
});

test('with everything well there is nothing to recover', () => {
	const {checks, tools, broken} = world();
	broken.clear();
	expect(planRecovery(checks, tools.situation())).toEqual({refused: 'nothing to recover: every check holds'});
});

test('the end of a recovery says why the operation in it ended', async () => {
	const {recovery, tools, events} = world();
	const host = {
		ask: async () => good({status: 3, stdout: 'no such bus', stderr: '', bytes: Buffer.alloc(0)}),
	} as unknown as Host;
	expect(await runRecovery(recovery, {...tools, host})).toBe('failed');
	expect(events.at(-1)).toMatchObject({type: 'ended', words: 'mend a: failed: exit 3: no such bus'});
});

test('what cannot be told under way is asked again, since a lost route takes only one look with it', async () => {
	const {checks, tools, sent} = world();
	let looks = 0;
	let now = 0;
	const first = checks[0] as Check;
	const holds = (situation: Situation): Verdict =>
		looks === 1 ? {state: 'failed', words: 'no answer in 14 s'} : first.holds(situation);
	const recovery = planRecovery([{...first, holds}], tools.situation()) as Recovery;
	const look = async () => {
		looks++;
		now += 14_000;
	};
	expect(await runRecovery(recovery, {...tools, look, clock: () => now})).toBe('done');
	expect(sent).toEqual(['mend a']);
});
