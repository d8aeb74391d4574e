import type {OperationId, RunOutcome, StepState} from '../../ops/operations/operation.ts';
import type {ConsoleState, JournalEntry} from '../state.ts';
import {derive} from './derive.ts';
import type {Level} from './face.ts';
import {type RunbookModel, selectRunbook} from './next-step.ts';

export type StepRow = {
	readonly number: number;
	readonly says: string;
	/** Empty while a step that has only begun says no more than its name. */
	readonly words: string;
	readonly state: StepState;
	readonly level: Level;
	readonly elapsedMs: number | null;
};

export type OperationsPaneModel = {
	readonly running: {
		readonly title: string;
		readonly operation: OperationId;
		readonly elapsedMs: number;
		readonly done: number;
		readonly steps: readonly StepRow[];
		/** The last that runs: a recovery's check goes on around the operation that mends it. */
		readonly current: StepRow | null;
		readonly output: readonly string[];
	} | null;
	readonly last: {
		readonly operation: OperationId;
		readonly outcome: RunOutcome;
		readonly level: Level;
		readonly words: string;
		readonly agoMs: number;
	} | null;
	readonly runbook: RunbookModel;
	/** Newest last, with the day's entries as they came. */
	readonly journal: readonly (JournalEntry & {readonly key: string; readonly selected: boolean})[];
	readonly dryRun: boolean;
};

export const selectOperations: (state: ConsoleState) => OperationsPaneModel = derive(
	[
		state => state.operation,
		state => state.journal,
		selectRunbook,
		state => state.nowMs,
		state => state.session.dryRun,
		state => state.view.selected.operations,
		state => state.view.filter.operations,
	],
	(operation, journal, runbook, nowMs, dryRun, selected, filter) => ({
		running: operation.phase === 'running' ? runningOf(operation, nowMs) : null,
		last:
			operation.phase === 'idle' && operation.last
				? {...operation.last, level: OUTCOMES[operation.last.outcome], agoMs: Math.max(0, nowMs - operation.last.at)}
				: null,
		runbook,
		journal: journal
			.filter(
				entry => filter === '' || `${entry.words} ${entry.command ?? ''}`.toLowerCase().includes(filter.toLowerCase()),
			)
			.map(entry => ({...entry, key: journalKey(entry), selected: journalKey(entry) === selected})),
		dryRun,
	}),
);

export const journalKey = (entry: JournalEntry): string => `${entry.at} ${entry.words}`;

const OUTCOMES: Record<RunOutcome, Level> = {
	done: 'good',
	failed: 'bad',
	unknown: 'bad',
	refused: 'warn',
	cancelled: 'warn',
};

const LEVELS: Record<StepState, Level> = {
	pending: 'dim',
	running: 'plain',
	done: 'good',
	failed: 'bad',
	unknown: 'bad',
	skipped: 'dim',
};

function runningOf(
	operation: Extract<ConsoleState['operation'], {phase: 'running'}>,
	nowMs: number,
): OperationsPaneModel['running'] {
	const steps = operation.plan.steps.map((step, index): StepRow => {
		const now = operation.steps[index];
		const state = now?.state ?? 'pending';
		return {
			number: index + 1,
			says: step.says,
			words: !now || state === 'pending' || now.words === step.says ? '' : now.words,
			state,
			level: LEVELS[state],
			elapsedMs: now?.startedAt == null ? null : Math.max(0, (now.endedAt ?? nowMs) - now.startedAt),
		};
	});
	return {
		title: operation.plan.title,
		operation: operation.plan.operation,
		elapsedMs: Math.max(0, nowMs - operation.startedAt),
		done: steps.filter(({state}) => state === 'done' || state === 'skipped').length,
		steps,
		current: steps.findLast(({state}) => state === 'running') ?? null,
		output: operation.output,
	};
}
