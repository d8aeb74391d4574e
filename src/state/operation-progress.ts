import type {Plan, RunEvent} from '../ops/operations/operation.ts';
import type {OperationState, PlannedWork} from './state.ts';

const OUTPUT_TAIL = 200;

/** What of a plan the journal keeps. */
export const plannedWork = ({operation, title, targets, excluded, warnings, inverse}: Plan): PlannedWork => ({
	operation,
	title,
	targets: targets.map(({says}) => says),
	on: targets.filter(({kind}) => kind === 'unit' || kind === 'path').map(({identity}) => identity),
	excluded: excluded.map(({says}) => says),
	warnings,
	inverse,
});

/** A plan whose run begins: every step is still to come. */
export const started = (plan: Plan, at: number): OperationState => ({
	phase: 'running',
	plan,
	startedAt: at,
	output: [],
	steps: plan.steps.map(() => ({state: 'pending', words: '', startedAt: null, endedAt: null})),
});

/** What the runner told, folded into what the operations pane shows. Pure. */
export function advance(operation: OperationState, event: RunEvent): OperationState {
	if (operation.phase !== 'running') return operation;
	if (event.type === 'ended') {
		return {
			phase: 'idle',
			last: {operation: operation.plan.operation, outcome: event.outcome, words: event.words, at: event.at},
		};
	}
	if (event.type === 'held') {
		const {next, index, at} = event;
		return {...operation, held: {next, check: operation.plan.steps[index]?.id ?? '', since: at}};
	}
	if (event.type === 'let-go') {
		const {held: _, ...going} = operation;
		return going;
	}
	if (event.type === 'output')
		return {...operation, output: [...operation.output, ...event.text.split('\n')].slice(-OUTPUT_TAIL)};
	const steps = operation.steps.map((step, index) => {
		if (index !== event.index) return step;
		const ended = event.state !== 'running' && event.state !== 'pending';
		return {
			state: event.state,
			words: event.words,
			startedAt: step.startedAt ?? event.at,
			endedAt: ended ? event.at : null,
		};
	});
	return {...operation, steps};
}
