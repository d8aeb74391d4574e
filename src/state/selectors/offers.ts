import {OPERATIONS} from '../../ops/operations/catalogue.ts';
import {isRefusal, type OperationId, type Plan, type Tier} from '../../ops/operations/operation.ts';
import {doneWork} from '../done-work.ts';
import type {ConsoleState} from '../state.ts';
import {derive} from './derive.ts';

/** One line of the operations menu: what it would do now, or why it cannot. */
export type Offer = {
	readonly operation: OperationId;
	readonly title: string;
	readonly tier: Tier;
	/** What it would act on and how many commands that takes; null when refused. */
	readonly plan: Plan | null;
	readonly commands: number;
	readonly refused: string | null;
};

/** In the order of the menu's keys. `signal` has a picker of its own. */
export const OFFERED: readonly OperationId[] = [
	'stop-service',
	'free-gpus',
	'launch-server',
	'run-extractor',
	'recover',
	'restore-files',
	'clear-dumps',
	'stop-extractor',
	'stop-server',
	'undo',
];

export const selectOffers: (state: ConsoleState) => readonly Offer[] = derive(
	[
		state => state.target,
		state => state.facts,
		state => state.nowMs,
		state => state.session,
		state => (state.operation.phase === 'running' ? state.operation.plan.operation : null),
		state => state.journal,
	],
	(target, facts, nowMs, {readOnly, own}, running, journal) =>
		OFFERED.flatMap(id => {
			const entry = OPERATIONS.find(operation => operation.id === id);
			if (!entry) return [];
			const {title, tier} = entry;
			const made = entry.plan({target, facts, nowMs, own, done: doneWork(journal)}, null);
			const plan = isRefusal(made) ? null : made;
			const why = readOnly
				? 'read-only: W to leave'
				: running !== null
					? `${running} is still running`
					: isRefusal(made)
						? made.refused
						: null;
			return [
				{
					operation: id,
					title,
					tier: plan?.tier ?? tier,
					plan,
					commands: plan?.steps.filter(step => step.kind !== 'wait').length ?? 0,
					refused: why,
				},
			];
		}),
);
