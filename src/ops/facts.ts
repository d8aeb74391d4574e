import type {Failure, Outcome} from './outcome.ts';
import type {ActingFacts} from './probes/acting.ts';
import type {AutostartFacts} from './probes/autostart.ts';
import type {CommandLineFacts} from './probes/command-lines.ts';
import type {ContentsFacts} from './probes/contents.ts';
import type {ExtractionFacts} from './probes/extraction.ts';
import type {FilesFacts} from './probes/files.ts';
import type {FlagsFacts} from './probes/flags.ts';
import type {GpuFacts} from './probes/gpus.ts';
import type {GuestFacts} from './probes/guest.ts';
import type {HolderFacts} from './probes/holders.ts';
import type {KernelLogFacts} from './probes/kernel-log.ts';
import type {LogFacts} from './probes/log.ts';
import type {MountFacts} from './probes/mounts.ts';
import type {ProbeId} from './probes/probe.ts';
import type {ProcessFacts} from './probes/processes.ts';
import type {ServerFacts} from './probes/server.ts';
import type {ServiceFacts} from './probes/services.ts';
import type {TopologyFacts} from './probes/topology.ts';

/** Newest answer and newest good answer. A failed look never erases what was known; its age tells the rest. */
export type Reading<T> = {
	/** Order in which looks were started: a late answer never overwrites a newer one. */
	readonly turn: number;
	readonly last: {readonly value: T; readonly at: number; readonly startedAt: number} | null;
	readonly failing: {readonly failure: Failure; readonly since: number; readonly at: number} | null;
};

export type FactValues = {
	gpus: GpuFacts;
	topology: TopologyFacts;
	holders: HolderFacts;
	processes: ProcessFacts;
	'command-lines': CommandLineFacts;
	mounts: MountFacts;
	services: ServiceFacts;
	autostart: AutostartFacts;
	acting: ActingFacts;
	'kernel-log': KernelLogFacts;
	server: ServerFacts;
	extraction: ExtractionFacts;
	log: LogFacts;
	files: FilesFacts;
	contents: ContentsFacts;
	flags: FlagsFacts;
	guest: GuestFacts;
};

/** `null`: not yet heard, or nothing to ask on this target. */
export type Facts = {readonly [K in ProbeId]: Reading<FactValues[K]> | null};

export const NO_FACTS: Facts = {
	gpus: null,
	topology: null,
	holders: null,
	processes: null,
	'command-lines': null,
	mounts: null,
	services: null,
	autostart: null,
	acting: null,
	'kernel-log': null,
	server: null,
	extraction: null,
	log: null,
	files: null,
	contents: null,
	flags: null,
	guest: null,
};

export function record<T>(
	before: Reading<T> | null,
	outcome: Outcome<T>,
	when: {turn: number; startedAt: number; at: number},
): Reading<T> {
	if (before && when.turn < before.turn) return before;
	const {turn, at, startedAt} = when;
	if (outcome.ok) return {turn, last: {value: outcome.value, at, startedAt}, failing: null};
	return {
		turn,
		last: before?.last ?? null,
		failing: {failure: outcome.failure, since: before?.failing?.since ?? at, at},
	};
}

/** The value if the newest look was good, else null: for decisions, where an old value must not count. */
export function fresh<T>(reading: Reading<T> | null): T | null {
	return reading?.last && !reading.failing ? reading.last.value : null;
}
