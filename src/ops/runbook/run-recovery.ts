import {
	isRefusal,
	type Plan,
	type RunEvent,
	type RunOutcome,
	type Situation,
	type Step,
} from '../operations/operation.ts';
import {type RunTools, runPlan} from '../operations/run.ts';
import {createPace, type Hold} from './pace.ts';
import type {Check} from './runbook.ts';

/** Where in the recovery's step list each check and its operation's steps stand. */
export type Recovery = {
	readonly plan: Plan;
	readonly parts: readonly {readonly check: Check; readonly from: number; readonly count: number}[];
	/** Every command that was shown: the bounds of the confirmation. */
	readonly scripts: ReadonlySet<string>;
	/** Plans are made with this clock, so that names made from it stay the ones that were shown. */
	readonly nowMs: number;
};

/** All that a recovery would do from here, shown before anything runs. */
export function planRecovery(checks: readonly Check[], situation: Situation): Recovery | {readonly refused: string} {
	const steps: Step[] = [];
	const parts: {check: Check; from: number; count: number}[] = [];
	const plans: Plan[] = [];
	const notes: string[] = [];
	for (const check of checks) {
		const verdict = check.holds(situation);
		if (verdict.state === 'failed') return {refused: `${check.says}: ${verdict.words}`};
		const from = steps.length;
		steps.push({kind: 'wait', id: check.id, says: check.says, looks: check.looks, limitMs: 60_000, until: check.holds});
		if (verdict.state === 'pending') {
			for (const plan of check.plans(situation)) {
				if (isRefusal(plan)) notes.push(`no command yet for "${check.says}": ${plan.refused}`);
				else {
					plans.push(plan);
					steps.push(...plan.steps);
				}
			}
		}
		parts.push({check, from, count: steps.length - from});
	}
	if (plans.length === 0 && notes.length === 0) return {refused: 'nothing to recover: every check holds'};
	const {target, nowMs} = situation;
	const plan: Plan = {
		operation: 'recover',
		title: `recover ${target.name}: ${plans.length} operation(s)`,
		tier: 3,
		confirmWord: target.name,
		targets: plans.flatMap(each => each.targets),
		excluded: plans.flatMap(each => each.excluded),
		steps,
		warnings: [...notes, ...plans.flatMap(each => each.warnings)],
		inverse: null,
	};
	const scripts = new Set(steps.flatMap(step => (step.kind === 'wait' ? [] : [step.script])));
	return {plan, parts, scripts, nowMs};
}

/** How long what cannot be told is asked again before it ends a recovery that is under way. */
const PATIENCE_MS = 20_000;

/**
 * Walks the checks; mends what does not hold, inside what was shown; stops at the first thing outside it. With a `hold` it
 * goes step by step: the first operation begins at once, since it was just confirmed, every further one when a person says so.
 * A link that is lost under an act leaves it unknown: if fresh looks then show it undone, it is begun once more. Every command
 * here may come twice, late and in any order: a launch begins once by its name, a signal goes to an identity.
 */
export async function runRecovery(
	{plan, parts, scripts, nowMs}: Recovery,
	tools: RunTools,
	hold: Hold | null = null,
): Promise<RunOutcome> {
	const pace = createPace(hold);
	const say = (index: number, state: 'running' | 'done' | 'failed' | 'skipped', words: string) =>
		tools.emit({type: 'step', index, state, words, at: tools.clock()});
	const end = async (outcome: RunOutcome, words: string) => {
		await tools.outcome(words, outcome === 'done' ? 'ok' : 'critical');
		tools.emit({type: 'ended', outcome, words, at: tools.clock()});
		return outcome;
	};
	for (const {check, from, count} of parts) {
		const skipRest = () => {
			for (let index = from + 1; index < from + count; index++) say(index, 'skipped', 'not needed');
		};
		say(from, 'running', check.says);
		let reachedAt = tools.clock();
		let failingSince: number | null = null;
		let again = false;
		// Each round mends one thing; as many rounds as there were things to mend, and one to see that all is well.
		for (let round = 0; ; round++) {
			if (tools.signal.aborted) return end('cancelled', 'stopped by the operator');
			await tools.look(check.looks);
			const verdict = check.holds(tools.situation());
			if (verdict.state === 'met') {
				if (round === 0) skipRest();
				say(from, 'done', verdict.words);
				break;
			}
			if (verdict.state === 'failed') {
				// A route that is lost under a look takes the look with it; the next one goes another way.
				failingSince ??= tools.clock();
				if (tools.clock() - failingSince < PATIENCE_MS) {
					say(from, 'running', verdict.words);
					await new Promise(resolve => setTimeout(resolve, tools.pauseMs));
					round--;
					continue;
				}
			} else failingSince = null;
			if (verdict.state === 'failed' || round > count) {
				say(from, 'failed', verdict.words);
				return end('failed', `${check.says}: ${verdict.words}`);
			}
			const next = check.plans({...tools.situation(), nowMs})[0];
			if (!next || isRefusal(next)) {
				if (tools.clock() - reachedAt < check.settleMs) {
					say(from, 'running', verdict.words);
					await new Promise(resolve => setTimeout(resolve, tools.pauseMs));
					round--;
					continue;
				}
				const why = next ? next.refused : verdict.words;
				say(from, 'failed', why);
				return end('refused', `${check.says}: ${why}`);
			}
			const strange = next.steps.find(step => step.kind !== 'wait' && !scripts.has(step.script));
			if (strange) {
				say(from, 'failed', 'the plan changed since it was confirmed');
				return end(
					'refused',
					`${check.says}: "${strange.says}" is not what was confirmed; look at it and confirm again`,
				);
			}
			if (!pace.mayBegin(next)) {
				say(from, 'running', `waits before: ${next.title}`);
				tools.emit({type: 'held', index: from, next, at: tools.clock()});
				const choice = await pace.ask(next);
				tools.emit({type: 'let-go', index: from, at: tools.clock()});
				if (choice === 'stop') {
					say(from, 'skipped', 'not begun');
					return end('cancelled', `stopped before: ${next.title}; recover goes on from there`);
				}
				// Time has passed: what runs is planned on what is true by now, and shown again where that makes a difference.
				say(from, 'running', check.says);
				reachedAt = tools.clock();
				round--;
				continue;
			}
			pace.began();
			let why = '';
			const emit = (event: RunEvent) => {
				if (event.type === 'ended') why = event.words;
				tools.emit(moved(event, next, plan, from, count));
			};
			const outcome = await runPlan(next, {...tools, emit});
			if (outcome === 'unknown' && !again && !tools.signal.aborted) {
				again = true;
				say(from, 'running', `looks again: ${why}`);
				continue;
			}
			if (outcome !== 'done') {
				say(from, 'failed', `${next.title}: ${outcome}`);
				return end(outcome, `${next.title}: ${outcome}: ${why}`);
			}
		}
	}
	return end('done', `${plan.title}: every check holds`);
}

/** An inner plan's events, at the place where its steps stand in the recovery's list. */
function moved(event: RunEvent, inner: Plan, outer: Plan, from: number, count: number): RunEvent {
	if (event.type === 'ended') return {type: 'output', index: from, text: event.words, at: event.at};
	const step = inner.steps[event.index];
	const script = step && step.kind !== 'wait' ? step.script : null;
	const at = outer.steps.findIndex(
		(each, index) =>
			index > from &&
			index < from + count &&
			(script !== null
				? each.kind !== 'wait' && each.script === script
				: each.kind === 'wait' && each.id === step?.id && each.says === step.says),
	);
	return {...event, index: at < 0 ? from : at};
}
