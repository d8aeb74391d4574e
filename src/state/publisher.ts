import type {Facts} from '../ops/facts.ts';
import {type AlertMemory, judgeAlerts} from './alerts.ts';

import type {Journal} from './journal.ts';
import type {Recorder} from './recorder.ts';
import type {Alert, History} from './state.ts';
import type {ConsoleStore} from './store.ts';
import type {Summary} from './summary.ts';

/** Facts come in at any time; the store gets them once a second, with clock and alerts, in one commit. */
export type Publisher = {
	now(): void;
	/** With all else that comes in now; more often than once a second only while something is done. */
	soon(): void;
	acknowledge(alertId: string | 'all'): void;
	stop(): void;
};

export type PublisherOptions = {
	readonly store: ConsoleStore;
	readonly recorder: Recorder;
	readonly journal: Journal;
	readonly clock: () => number;
	/** What has come in; `work` is how much is under way. */
	current(): {readonly facts: Facts; readonly history: History; readonly work: number};
	summarize(): Summary;
	/** false while the terminal takes no more: what is not drawn need not be published. */
	mayPublish(): boolean;
};

const TICK_MS = 1_000;
const UNATTENDED_MS = 120_000;
/** A console left open for days must not stay armed. */
const DISARM_MS = 30 * 60_000;
/** A run that goes on for days is followed in the journal, so that a report needs nothing else. */
const SUMMARY_MS = 10 * 60_000;

export function createPublisher(options: PublisherOptions): Publisher {
	const {store, recorder, clock} = options;
	let memory: AlertMemory = new Map();
	let flushing: NodeJS.Immediate | null = null;
	const acknowledged = new Set<string>();
	const raised = new Set<string>();

	function now(): void {
		if (!options.mayPublish()) return;
		const nowMs = clock();
		const {target, route, view} = store.getState();
		const current = options.current();
		const judged = judgeAlerts({facts: current.facts, target, nowMs, route}, memory, acknowledged);
		memory = judged.memory;
		noteRaised(judged.alerts);
		disarm(nowMs);
		const {session} = store.getState();
		const {state: recording} = options.journal;
		store.setState({
			...current,
			nowMs,
			alerts: judged.alerts,
			...(view.hint && view.hint.until < nowMs && {view: {...view, hint: null}}),
			...(session.recording !== recording && {session: {...session, recording}}),
		});
	}

	function noteRaised(alerts: readonly Alert[]): void {
		for (const {id, level, words} of alerts) {
			if (raised.has(id)) continue;
			raised.add(id);
			recorder.note({kind: 'alert', level, words, command: null});
		}
		for (const id of raised) if (!alerts.some(alert => alert.id === id)) raised.delete(id);
	}

	function disarm(nowMs: number): void {
		const {session} = store.getState();
		if (session.readOnly || nowMs - session.lastKeyAt <= DISARM_MS) return;
		store.setState({session: {...session, readOnly: true}});
		recorder.note({kind: 'session', level: 'info', words: 'read-only after 30 min without a key', command: null});
	}

	let summaryAt = clock();
	function followRun(): void {
		if (clock() - summaryAt <= SUMMARY_MS || !options.current().facts.extraction?.last?.value.run?.alive) return;
		summaryAt = clock();
		const summary = options.summarize();
		const {whole = null, expected = null} = summary.samples ?? {};
		const words = `extraction ${summary.run?.state}: ${whole ?? '?'} of ${expected ?? '?'} whole`;
		recorder.note({kind: 'mark', level: 'info', words, command: null, summary});
	}

	/** Nobody has touched a key for a while: half as many frames, until one does or something is done. */
	let skipped = false;
	const ticking = setInterval(() => {
		followRun();
		const {session, operation} = store.getState();
		const unattended = clock() - session.lastKeyAt > UNATTENDED_MS && operation.phase === 'idle';
		skipped = unattended && !skipped;
		if (!skipped) now();
	}, TICK_MS);

	return {
		now,
		soon() {
			flushing ??= setImmediate(() => {
				flushing = null;
				now();
			});
		},
		acknowledge(alertId) {
			for (const {id} of store.getState().alerts) if (alertId === 'all' || id === alertId) acknowledged.add(id);
			now();
		},
		stop() {
			clearInterval(ticking);
			if (flushing) clearImmediate(flushing);
		},
	};
}
