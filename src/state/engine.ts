import {readFile} from 'node:fs/promises';
import {type Actor, breakLock, breakScript, holdLock, lockWords, takeLock} from '../ops/act-lock.ts';
import {type Facts, NO_FACTS} from '../ops/facts.ts';
import type {Plan, RunEvent, RunOutcome, Situation} from '../ops/operations/operation.ts';
import {type RunTools, runPlan} from '../ops/operations/run.ts';
import type {ProbeId} from '../ops/probes/probe.ts';
import type {Choice} from '../ops/runbook/pace.ts';
import {type Recovery, runRecovery} from '../ops/runbook/run-recovery.ts';
import type {Host, HostStatus} from '../ops/transports/host.ts';
import {type AlertMemory, judgeAlerts} from './alerts.ts';
import {doneWork} from './done-work.ts';
import {hintsOf} from './hints.ts';
import {appendHistory} from './history.ts';
import {createHolding} from './holding.ts';
import type {Journal} from './journal.ts';
import {oneAtATime} from './one-at-a-time.ts';
import {advance, plannedWork, started} from './operation-progress.ts';
import {type Catalogue, createPoller, type Poller} from './poller.ts';
import type {JournalEntry} from './state.ts';
import type {ConsoleStore} from './store.ts';
import {type Summary, summaryOf} from './summary.ts';

export type EngineOptions = {
	readonly store: ConsoleStore;
	readonly probes: Catalogue;
	readonly journal: Journal;
	openHost(onStatus: (status: HostStatus) => void): Host;
	readonly clock: () => number;
	/** false while the terminal takes no more: what is not drawn need not be published. */
	mayPublish?(): boolean;
	/** Processes whose rows are on screen. */
	visiblePids?(): readonly number[];
};

/** What makes the console live: looks into facts, facts into the store, plans into acts and the journal. */
export type Engine = {
	readonly host: Host;
	readonly poller: Poller;
	situation(): Situation;
	look(probes: readonly ProbeId[]): Promise<void>;
	/** Runs one plan at a time; refuses when another runs. `onEvent` besides what goes to store and journal. */
	run(work: Plan | Recovery, onEvent?: (event: RunEvent) => void, pace?: 'whole' | 'stepwise'): Promise<RunOutcome>;
	/** Tries the routes again and asks again for what was skipped; then looks. */
	reconnect(): Promise<void>;
	/** Answers a recovery that waits before its next operation. */
	goOn(choice: Choice): void;
	abort(): void;
	/** Moves aside whatever lock lies there. Only when a person said so. */
	breakLock(): Promise<string>;
	note(entry: Omit<JournalEntry, 'at'>): void;
	acknowledge(alertId: string | 'all'): void;
	start(): void;
	stop(): Promise<void>;
};

const TICK_MS = 1_000;
const UNATTENDED_MS = 120_000;
/** A console left open for days must not stay armed. */
const DISARM_MS = 30 * 60_000;
/** A run that goes on for days is followed in the journal, so that a report needs nothing else. */
const SUMMARY_MS = 10 * 60_000;
const JOURNAL_TAIL = 500;

export function createEngine(options: EngineOptions): Engine {
	const {store, journal, clock} = options;
	const target = () => store.getState().target;
	let facts: Facts = NO_FACTS;
	let history = store.getState().history;
	let memory: AlertMemory = new Map();
	const acknowledged = new Set<string>();
	let work = 0;
	let running: AbortController | null = null;
	let flushing: NodeJS.Immediate | null = null;
	const raised = new Set<string>();

	const host = options.openHost(status => {
		const before = store.getState().route;
		store.setState({route: status});
		if (status.state !== before.state || status.label !== before.label) {
			const why = status.passedOver.map(each => `${each.label}: ${each.reason}`).join('; ');
			note({
				kind: 'route',
				level: status.state === 'up' ? 'ok' : 'warning',
				words: `route ${status.state}: ${status.label}${why ? ` (${why})` : ''}`,
				command: null,
			});
		}
	});

	const poller = createPoller({
		target,
		probes: options.probes,
		ask: (lane, script, limits) => host.ask(lane, script, limits),
		askOuter: (_lane, script, limits) => host.askOuter(script, limits),
		wants: id => id !== 'guest' || host.status.passedOver.length > 0 || host.status.state === 'down',
		hints: () => hintsOf({...store.getState(), facts}, options.visiblePids?.() ?? [], clock()),
		facts: () => facts,
		onFacts(next, id) {
			facts = next;
			if (id === 'gpus' && next.gpus?.last && !next.gpus.failing) {
				history = appendHistory(history, next.gpus.last.value, next.gpus.last.at);
			}
			if (running) publishSoon();
		},
		onWork(change) {
			work += change;
		},
		clock,
	});

	/** One commit for everything that came in: facts, clock, alerts. */
	function publish() {
		if (options.mayPublish && !options.mayPublish()) return;
		const nowMs = clock();
		const state = store.getState();
		const judged = judgeAlerts({facts, target: target(), nowMs, route: state.route}, memory, acknowledged);
		memory = judged.memory;
		for (const alert of judged.alerts) {
			if (raised.has(alert.id)) continue;
			raised.add(alert.id);
			note({
				kind: 'alert',
				level: alert.level === 'critical' ? 'critical' : alert.level === 'warning' ? 'warning' : 'info',
				words: alert.words,
				command: null,
			});
		}
		for (const id of raised) if (!judged.alerts.some(alert => alert.id === id)) raised.delete(id);
		if (!state.session.readOnly && nowMs - state.session.lastKeyAt > DISARM_MS) {
			store.setState({session: {...state.session, readOnly: true}});
			note({kind: 'session', level: 'info', words: 'read-only after 30 min without a key', command: null});
		}
		const hint = state.view.hint && state.view.hint.until < nowMs ? null : state.view.hint;
		store.setState({
			facts,
			history,
			nowMs,
			alerts: judged.alerts,
			work,
			...(hint !== state.view.hint && {view: {...state.view, hint}}),
			...(state.session.recording !== journal.state && {
				session: {...store.getState().session, recording: journal.state},
			}),
		});
	}

	function publishSoon() {
		flushing ??= setImmediate(() => {
			flushing = null;
			publish();
		});
	}

	function shown(entry: Omit<JournalEntry, 'at'>): JournalEntry {
		const whole = {...entry, at: clock()};
		store.setState(state => ({journal: [...state.journal, whole].slice(-JOURNAL_TAIL)}));
		return whole;
	}

	function note(entry: Omit<JournalEntry, 'at'>): void {
		journal.note(shown(entry));
	}

	/** The same, on the disk before it resolves. */
	const keep = (entry: Omit<JournalEntry, 'at'>): Promise<void> => journal.write(shown(entry));

	const holding = createHolding(note, keep);

	const summarize = (): Summary => summaryOf({...store.getState(), facts});

	const actorOf = (operation: string): Actor => ({
		token: store.getState().session.token,
		operator: store.getState().session.operator,
		from: store.getState().session.from,
		operation,
		since: clock(),
	});

	const situation = (): Situation => ({
		target: target(),
		facts,
		nowMs: clock(),
		own: store.getState().session.own,
		done: doneWork(store.getState().journal),
	});

	function tools(signal: AbortSignal, emit: (event: RunEvent) => void): RunTools {
		return {
			host,
			look: probes => poller.look(probes),
			situation,
			emit,
			intend: (words, command) => keep({kind: 'intent', level: 'info', words, command}),
			outcome: async (words, level) => {
				try {
					await keep({kind: 'outcome', level, words, command: null});
				} catch {
					// What was done is done; the badge in the header says that it is not on disk.
				}
			},
			readFile: path => readFile(path),
			signal,
			clock,
			pauseMs: 400,
		};
	}

	/** Nobody has touched a key for a while: half as many frames, until one does or something critical comes up. */
	let skipped = false;
	let summaryAt = clock();
	const ticking = setInterval(() => {
		if (clock() - summaryAt > SUMMARY_MS && facts.extraction?.last?.value.run?.alive) {
			summaryAt = clock();
			const summary = summarize();
			const {whole = null, expected = null} = summary.samples ?? {};
			const words = `extraction ${summary.run?.state}: ${whole ?? '?'} of ${expected ?? '?'} whole`;
			note({kind: 'mark', level: 'info', words, command: null, summary});
		}
		const {session, operation} = store.getState();
		const unattended = clock() - session.lastKeyAt > UNATTENDED_MS && operation.phase === 'idle';
		skipped = unattended && !skipped;
		if (!skipped) publish();
	}, TICK_MS);

	/** Each try would ask the operator anew. */
	const reconnect = oneAtATime(async () => {
		note({kind: 'route', level: 'info', words: 'the routes are tried again', command: null});
		await host.reconnect();
		await poller.look(Object.keys(options.probes) as ProbeId[]);
		publish();
	});

	return {
		host,
		poller,
		situation,
		async look(probes) {
			await poller.look(probes);
			publish();
		},
		async run(asked, onEvent, pace = 'whole') {
			if (running) return 'refused';
			running = new AbortController();
			const plan = 'plan' in asked ? asked.plan : asked;
			store.setState({operation: started(plan, clock())});
			let letGo = async () => {};
			const emit = (event: RunEvent) => {
				store.setState(state => ({operation: advance(state.operation, event)}));
				onEvent?.(event);
				publishSoon();
			};
			const kit = tools(running.signal, emit);
			try {
				const actor = actorOf(plan.operation);
				const lock = await takeLock(host, actor);
				const why = typeof lock === 'string' ? lock : lock.kind === 'held' ? lockWords(lock) : null;
				if (why !== null) {
					note({kind: 'outcome', level: 'warning', words: `${plan.operation} refused: ${why}`, command: null});
					emit({type: 'ended', outcome: 'refused', words: why, at: clock()});
					return 'refused';
				}
				letGo = holdLock(host, actor);
				await keep({
					kind: 'intent',
					level: 'info',
					words: `${plan.title} (${plan.operation}${pace === 'stepwise' ? ', step by step' : ''})`,
					command: null,
					plan: plannedWork(plan),
					summary: summarize(),
				});
				const hold = pace === 'stepwise' ? holding.hold(kit.signal) : null;
				const outcome = await ('plan' in asked ? runRecovery(asked, kit, hold) : runPlan(plan, kit));
				note({
					kind: 'outcome',
					level: outcome === 'done' ? 'ok' : 'warning',
					words: `${plan.operation} ended: ${outcome}`,
					command: null,
					plan: plannedWork(plan),
					outcome,
					summary: summarize(),
				});
				return outcome;
			} catch (error) {
				emit({type: 'ended', outcome: 'failed', words: (error as Error).message, at: clock()});
				return 'failed';
			} finally {
				await letGo();
				running = null;
				publishSoon();
			}
		},
		async breakLock() {
			await keep({
				kind: 'intent',
				level: 'warning',
				words: 'break the action lock of this host',
				command: breakScript(),
			});
			const lock = await breakLock(host);
			const words = typeof lock === 'string' ? lock : 'the action lock is broken';
			note({kind: 'outcome', level: 'warning', words, command: null});
			await poller.look(['acting']);
			publish();
			return words;
		},
		reconnect,
		goOn: holding.choose,
		abort: () => running?.abort(),
		note,
		acknowledge(alertId) {
			for (const alert of store.getState().alerts)
				if (alertId === 'all' || alert.id === alertId) acknowledged.add(alert.id);
			publish();
		},
		start() {
			poller.start();
			publish();
		},
		async stop() {
			clearInterval(ticking);
			if (flushing) clearImmediate(flushing);
			poller.stop();
			host.close();
			await journal.close();
		},
	};
}
