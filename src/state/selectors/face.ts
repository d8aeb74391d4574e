import type {Reading} from '../../ops/facts.ts';
import {describe} from '../../ops/outcome.ts';
import type {ProbeId} from '../../ops/probes/probe.ts';

/** How much a pane may be trusted. A number is never shown without one of these beside it. */
export type Face =
	/** Not asked yet, or nothing to ask on this target. */
	| {readonly kind: 'unheard'}
	| {readonly kind: 'fresh'; readonly ageMs: number}
	/** Older than it should be; `late` from three intervals, `stale` from ten. */
	| {readonly kind: 'late' | 'stale'; readonly ageMs: number}
	/** The newest look failed; `ageMs` is that of the value still shown, null when there never was one. */
	| {readonly kind: 'failing'; readonly ageMs: number | null; readonly forMs: number; readonly words: string};

/** How often each probe is meant to look, to judge an age. Probes slow down by themselves, so this is the slow side. */
const INTERVAL_MS: Record<ProbeId, number> = {
	gpus: 3_000,
	topology: 600_000,
	holders: 5_000,
	processes: 5_000,
	'command-lines': 30_000,
	mounts: 6_000,
	services: 6_000,
	autostart: 60_000,
	acting: 10_000,
	'kernel-log': 10_000,
	server: 4_000,
	extraction: 6_000,
	log: 4_000,
	files: 60_000,
	contents: 60_000,
	flags: 1_800_000,
	guest: 10_000,
};

export function face(probe: ProbeId, reading: Reading<unknown> | null, nowMs: number): Face {
	if (reading === null || (reading.last === null && reading.failing === null)) return {kind: 'unheard'};
	const ageMs = reading.last ? Math.max(0, nowMs - reading.last.at) : null;
	if (reading.failing) {
		return {
			kind: 'failing',
			ageMs,
			forMs: Math.max(0, nowMs - reading.failing.since),
			words: describe(reading.failing.failure),
		};
	}
	const old = ageMs ?? 0;
	if (old > 10 * INTERVAL_MS[probe]) return {kind: 'stale', ageMs: old};
	return {kind: old > 3 * INTERVAL_MS[probe] ? 'late' : 'fresh', ageMs: old};
}

/** Health in one word, for a look; the words beside it say what it is. */
export type Level = 'plain' | 'dim' | 'good' | 'warn' | 'bad';
