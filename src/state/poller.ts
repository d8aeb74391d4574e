import {type Facts, type FactValues, type Reading, record} from '../ops/facts.ts';
import type {Failure} from '../ops/outcome.ts';
import {type Ask, observe} from '../ops/probes/observe.ts';
import type {Hints, Probe, ProbeId} from '../ops/probes/probe.ts';
import type {Target} from '../ops/target.ts';

export type Catalogue = {readonly [K in ProbeId]: Probe<FactValues[K]>};

export type PollerOptions = {
	/** As it is now: the configuration may be reloaded while looks go on. */
	target(): Target;
	readonly probes: Catalogue;
	readonly ask: Ask;
	/** The guest probe speaks to the hypervisor, all others to the host. */
	readonly askOuter: Ask;
	/** Whether this probe is worth asking now (the guest only while its own route is silent). */
	wants(id: ProbeId): boolean;
	hints(): Hints;
	facts(): Facts;
	/** Called after each look with the whole new set. `started` +1 before, −1 after. */
	onFacts(facts: Facts, id: ProbeId): void;
	onWork(change: 1 | -1): void;
	readonly clock: () => number;
};

export type Poller = {
	start(): void;
	/** Resolves when looks that began after this call have ended, well or not. */
	look(ids: readonly ProbeId[]): Promise<void>;
	stop(): void;
};

/** A target that timed out is asked again after 1, 2, 4 … times its cadence, up to a minute. */
const MAX_WAIT_MS = 60_000;

/**
 * When to look. One loop per probe: look, record, sleep after the end, so that a slow host slows its own loop and nothing
 * piles up. At most one look per probe is out; `look` waits for the one that is out and then for a fresh one.
 */
export function createPoller(options: PollerOptions): Poller {
	const {probes, clock} = options;
	const ids = Object.keys(probes) as ProbeId[];
	const running = new Map<ProbeId, Promise<void>>();
	const waiting = new Map<ProbeId, Promise<void>>();
	const timers = new Map<ProbeId, NodeJS.Timeout>();
	const silent = new Map<ProbeId, number>();
	let turn = 0;
	let stopped = false;

	async function once<K extends ProbeId>(id: K): Promise<void> {
		const probe: Probe<FactValues[K]> = probes[id];
		const before = options.facts()[id] as Reading<FactValues[K]> | null;
		const context = {target: options.target(), last: before?.last?.value ?? null, hints: options.hints()};
		const script = options.wants(id) ? probe.script(context) : null;
		if (script === null) return;
		const startedAt = clock();
		const mine = ++turn;
		options.onWork(1);
		const outcome = await observe(probe, script, context, id === 'guest' ? options.askOuter : options.ask);
		options.onWork(-1);
		if (stopped) return;
		silent.set(id, !outcome.ok && isLasting(outcome.failure) ? (silent.get(id) ?? 0) + 1 : 0);
		const now = options.facts();
		const next = record(now[id] as Reading<FactValues[K]> | null, outcome, {turn: mine, startedAt, at: clock()});
		options.onFacts({...now, [id]: next}, id);
	}

	function run(id: ProbeId): Promise<void> {
		clearTimeout(timers.get(id));
		const look = once(id).finally(() => {
			running.delete(id);
			if (!stopped && !waiting.has(id)) schedule(id);
		});
		running.set(id, look);
		return look;
	}

	function paceOf<K extends ProbeId>(id: K): number {
		const probe: Probe<FactValues[K]> = probes[id];
		const reading = options.facts()[id] as Reading<FactValues[K]> | null;
		return (reading?.last && probe.paceMs?.(reading.last.value)) ?? probe.everyMs;
	}

	function schedule(id: ProbeId) {
		const misses = silent.get(id) ?? 0;
		const everyMs = paceOf(id);
		const waitMs = misses === 0 ? everyMs : Math.max(everyMs, Math.min(MAX_WAIT_MS, everyMs * 2 ** misses));
		clearTimeout(timers.get(id));
		timers.set(
			id,
			setTimeout(() => run(id), waitMs),
		);
	}

	function lookOnce(id: ProbeId): Promise<void> {
		const out = running.get(id);
		if (!out) return run(id);
		const queued = waiting.get(id);
		if (queued) return queued;
		const next = out.then(() => {
			waiting.delete(id);
			return stopped ? undefined : run(id);
		});
		waiting.set(id, next);
		return next;
	}

	return {
		start() {
			for (const id of ids) run(id);
		},
		async look(wanted) {
			await Promise.all([...new Set(wanted)].map(lookOnce));
		},
		stop() {
			stopped = true;
			for (const timer of timers.values()) clearTimeout(timer);
		},
	};
}

/** Silence, and a tool that says in words that it cannot: asking at full speed changes neither. */
const isLasting = (failure: Failure): boolean => ['timeout', 'unreachable', 'lost', 'complaint'].includes(failure.kind);
