import {expect, test} from 'vitest';
import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import {NO_FACTS} from '../../../src/ops/facts.ts';
import type {Plan, RunEvent, Situation, Verdict} from '../../../src/ops/operations/operation.ts';
import type {RunTools} from '../../../src/ops/operations/run.ts';
import {bad, good} from '../../../src/ops/outcome.ts';
import type {LaneName} from '../../../src/ops/probes/probe.ts';
import type {Choice} from '../../../src/ops/runbook/pace.ts';
import {planRecovery, type Recovery, runRecovery} from '../../../src/ops/runbook/run-recovery.ts';
import type {Check} from '../../../src/ops/runbook/runbook.ts';
import type {Host} from '../../../src/ops/transports/host.ts';
import type {Limits} from '../../../src/ops/transports/lane.ts';

const NOTHING = good({status: 0, stdout: '', stderr: '', bytes: Buffer.alloc(0)});

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
				return NOTHING;
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

test.each([
	['once: it is begun once more', 1, 'done', ['mend a', 'mend a', 'mend b']],
	['again: it stays unknown', 2, 'unknown', ['mend a', 'mend a']],
])('a link that is lost under an act, and the look shows it undone, %s', async (_, losses, outcome, commands) => {
	const {recovery, tools, sent} = world();
	let left = losses;
	const host = {
		ask: async (lane: LaneName, script: string, limits: Limits) => {
			if (left-- <= 0) return tools.host.ask(lane, script, limits);
			sent.push(script);
			return bad({kind: 'lost', detail: 'its route was given up'});
		},
	} as unknown as Host;
	expect(await runRecovery(recovery, {...tools, host})).toBe(outcome);
	expect(sent).toEqual(commands);
});

test('a link that is lost under an act that was done all the same costs nothing', async () => {
	const {recovery, tools, sent, broken} = world();
	const host = {
		ask: async (lane: LaneName, script: string, limits: Limits) => {
			await tools.host.ask(lane, script, limits);
			return broken.size === 1 ? bad({kind: 'lost', detail: 'gone'}) : NOTHING;
		},
	} as unknown as Host;
	expect(await runRecovery(recovery, {...tools, host})).toBe('done');
	expect(sent).toEqual(['mend a', 'mend b']);
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

test('step by step: the first step was just confirmed, every further one waits until a person says so', async () => {
	const {recovery, tools, sent, events} = world();
	const shown: string[] = [];
	const hold = async (next: Plan): Promise<Choice> => {
		shown.push(`${next.title} after ${sent.join()}`);
		return 'next';
	};
	expect(await runRecovery(recovery, tools, hold)).toBe('done');
	expect(shown).toEqual(['mend b after mend a']);
	expect(sent).toEqual(['mend a', 'mend b']);
	expect(events.flatMap(({type}) => (type === 'held' || type === 'let-go' ? [type] : []))).toEqual(['held', 'let-go']);
	expect(events).toContainEqual(
		expect.objectContaining({type: 'held', index: 2, next: expect.objectContaining({title: 'mend b'})}),
	);
});

test('step by step: stopped before a step, nothing of it has begun, and a later recovery has only that left', async () => {
	const {recovery, tools, sent, events, checks} = world();
	expect(await runRecovery(recovery, tools, async () => 'stop')).toBe('cancelled');
	expect(sent).toEqual(['mend a']);
	expect(events.at(-1)).toMatchObject({
		type: 'ended',
		outcome: 'cancelled',
		words: 'stopped before: mend b; recover goes on from there',
	});
	const later = planRecovery(checks, tools.situation()) as Recovery;
	expect([...later.scripts]).toEqual(['mend b']);
	expect(await runRecovery(later, tools, async () => 'stop')).toBe('done');
});

/** `world` with a third broken thing, so that there are two holds. */
function wider() {
	const made = world();
	made.broken.add('c');
	const {checks} = made;
	const third: Check = {
		...(checks[0] as Check),
		id: 'c',
		says: 'c is well',
		holds: () => (made.broken.has('c') ? {state: 'pending', words: 'broken'} : {state: 'met', words: 'well'}),
		plans: () => [planFor('c', 'mend c')],
	};
	const recovery = planRecovery([...checks, third], made.tools.situation()) as Recovery;
	return {...made, recovery};
}

test('step by step: all the rest is asked for once', async () => {
	const {recovery, tools, sent} = wider();
	let holds = 0;
	const hold = async (): Promise<Choice> => {
		holds++;
		return 'rest';
	};
	expect(await runRecovery(recovery, tools, hold)).toBe('done');
	expect(holds).toBe(1);
	expect(sent).toEqual(['mend a', 'mend b', 'mend c']);
});

test('step by step: what changed while it waited is looked at anew', async () => {
	const {recovery, tools, sent, broken, command} = wider();
	const shown: string[] = [];
	const hold = async (next: Plan): Promise<Choice> => {
		shown.push(next.title);
		if (next.title === 'mend b') broken.delete('b');
		return 'next';
	};
	expect(await runRecovery(recovery, tools, hold)).toBe('done');
	expect(shown).toEqual(['mend b', 'mend c']);
	expect(sent).toEqual(['mend a', 'mend c']);

	const other = world();
	const strange = async (): Promise<Choice> => {
		other.command.b = 'mend b --force';
		return 'next';
	};
	expect(await runRecovery(other.recovery, other.tools, strange)).toBe('refused');
	expect(other.sent).toEqual(['mend a']);
	expect(command.b).toBe('mend b');
});

test('step by step: other commands than those shown in the hold are shown before they run, also inside the bounds', async () => {
	const {checks, tools, sent, broken, command} = world();
	const both = (checks[1] as Check).plans;
	const second: Check = {
		...(checks[1] as Check),
		plans: situation => [...both(situation), planFor('b', 'mend b')],
	};
	command.b = 'mend b gently';
	const recovery = planRecovery([checks[0] as Check, second], tools.situation()) as Recovery;
	const shown: string[] = [];
	const hold = async (next: Plan): Promise<Choice> => {
		shown.push(next.steps.map(step => (step.kind === 'wait' ? '' : step.script)).join());
		command.b = 'mend b';
		return 'next';
	};
	expect(await runRecovery(recovery, tools, hold)).toBe('done');
	expect(shown).toEqual(['mend b gently', 'mend b']);
	expect(sent).toEqual(['mend a', 'mend b']);
	expect(broken.size).toBe(0);
});
