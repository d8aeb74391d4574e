import {readFile} from 'node:fs/promises';
import {type Actor, breakLock, breakScript, holdLock, lockWords, takeLock} from '../ops/act-lock.ts';
import type {Plan, RunEvent, RunOutcome, Situation} from '../ops/operations/operation.ts';
import {type RunTools, runPlan} from '../ops/operations/run.ts';
import type {ProbeId} from '../ops/probes/probe.ts';
import type {Choice} from '../ops/runbook/pace.ts';
import {type Recovery, runRecovery} from '../ops/runbook/run-recovery.ts';
import type {Host} from '../ops/transports/host.ts';
import {createHolding} from './holding.ts';
import {advance, plannedWork, started} from './operation-progress.ts';
import type {Recorder} from './recorder.ts';
import type {ConsoleStore} from './store.ts';
import type {Summary} from './summary.ts';

/** Turns plans into acts: one at a time, under the host's action lock, each intent in the journal before its act. */
export type Runner = {
	/** Refuses when another runs. `onEvent` besides what goes to store and journal. */
	run(work: Plan | Recovery, onEvent?: (event: RunEvent) => void, pace?: 'whole' | 'stepwise'): Promise<RunOutcome>;
	/** Answers a recovery that waits before its next operation. */
	goOn(choice: Choice): void;
	abort(): void;
	/** Moves aside whatever lock lies there. Only when a person said so. */
	breakLock(): Promise<string>;
	isRunning(): boolean;
};

export type RunnerOptions = {
	readonly store: ConsoleStore;
	readonly recorder: Recorder;
	readonly host: Host;
	readonly clock: () => number;
	situation(): Situation;
	summarize(): Summary;
	look(probes: readonly ProbeId[]): Promise<void>;
	/** Something moved that is on the screen. */
	changed(): void;
};

/** Between two looks at what an act has changed. */
const PAUSE_MS = 400;

export function createRunner(options: RunnerOptions): Runner {
	const {store, recorder, host, clock, summarize} = options;
	const holding = createHolding(recorder.note, recorder.keep);
	let running: AbortController | null = null;

	const actorOf = (operation: string): Actor => {
		const {token, operator, from} = store.getState().session;
		return {token, operator, from, operation, since: clock()};
	};

	const tools = (signal: AbortSignal, emit: (event: RunEvent) => void): RunTools => ({
		host,
		look: options.look,
		situation: options.situation,
		emit,
		intend: (words, command) => recorder.keep({kind: 'intent', level: 'info', words, command}),
		outcome: async (words, level) => {
			try {
				await recorder.keep({kind: 'outcome', level, words, command: null});
			} catch {
				// What was done is done; the badge in the header says that it is not on disk.
			}
		},
		readFile: path => readFile(path),
		signal,
		clock,
		pauseMs: PAUSE_MS,
	});

	/** Why nothing may be done here now; null when the lock is ours. */
	async function lockedOut(actor: Actor): Promise<string | null> {
		const lock = await takeLock(host, actor);
		return typeof lock === 'string' ? lock : lock.kind === 'held' ? lockWords(lock) : null;
	}

	async function underLock(work: Plan | Recovery, kit: RunTools, stepwise: boolean): Promise<RunOutcome> {
		const plan = planOf(work);
		await recorder.keep({
			kind: 'intent',
			level: 'info',
			words: `${plan.title} (${plan.operation}${stepwise ? ', step by step' : ''})`,
			command: null,
			plan: plannedWork(plan),
			summary: summarize(),
		});
		const hold = stepwise ? holding.hold(kit.signal) : null;
		const outcome = await ('plan' in work ? runRecovery(work, kit, hold) : runPlan(work, kit));
		recorder.note({
			kind: 'outcome',
			level: outcome === 'done' ? 'ok' : 'warning',
			words: `${plan.operation} ended: ${outcome}`,
			command: null,
			plan: plannedWork(plan),
			outcome,
			summary: summarize(),
		});
		return outcome;
	}

	return {
		async run(work, onEvent, pace = 'whole') {
			if (running) return 'refused';
			running = new AbortController();
			const plan = planOf(work);
			store.setState({operation: started(plan, clock())});
			const emit = (event: RunEvent) => {
				store.setState(state => ({operation: advance(state.operation, event)}));
				onEvent?.(event);
				options.changed();
			};
			const kit = tools(running.signal, emit);
			let letGo = async () => {};
			try {
				const actor = actorOf(plan.operation);
				const why = await lockedOut(actor);
				if (why !== null) {
					const words = `${plan.operation} refused: ${why}`;
					recorder.note({kind: 'outcome', level: 'warning', words, command: null});
					emit({type: 'ended', outcome: 'refused', words: why, at: clock()});
					return 'refused';
				}
				letGo = holdLock(host, actor);
				return await underLock(work, kit, pace === 'stepwise');
			} catch (error) {
				emit({type: 'ended', outcome: 'failed', words: (error as Error).message, at: clock()});
				return 'failed';
			} finally {
				await letGo();
				running = null;
				options.changed();
			}
		},
		goOn: holding.choose,
		abort: () => running?.abort(),
		async breakLock() {
			const words = 'break the action lock of this host';
			await recorder.keep({kind: 'intent', level: 'warning', words, command: breakScript()});
			const lock = await breakLock(host);
			const became = typeof lock === 'string' ? lock : 'the action lock is broken';
			recorder.note({kind: 'outcome', level: 'warning', words: became, command: null});
			await options.look(['acting']);
			options.changed();
			return became;
		},
		isRunning: () => running !== null,
	};
}

const planOf = (work: Plan | Recovery): Plan => ('plan' in work ? work.plan : work);
