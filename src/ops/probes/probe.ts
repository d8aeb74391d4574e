import type {Target} from '../target.ts';

/**
 * A *probe* is a script, its cadence, its limits and a pure parser. Only a probe may say what is true of a host.
 * `script` is POSIX sh for a lane: under 2 KB (a program in a here-document apart), never `$$`, roots by $PROC $DEV $SYS $ETC, a tool that may hang behind its
 * own `timeout -k 1 N`. `parse` turns the whole answer into a value; it has no clock, no host and no defaults, and throws
 * ParseError (the text does not fit) or Complaint (the tool says what is wrong). Exit status is data: most tools here say
 * more on stdout than in their status.
 */
export type Probe<T> = {
	readonly id: ProbeId;
	readonly lane: LaneName;
	/** From the end of one look to the start of the next. */
	readonly everyMs: number;
	/** Slower than `everyMs` while the newest good value says that nothing moves. An operation that waits looks anyway. */
	paceMs?(value: T): number;
	readonly limitMs: number;
	readonly capBytes: number;
	/** null: nothing to ask on this target (not configured). */
	script(context: ProbeContext<T>): string | null;
	parse(answer: Answer, context: ProbeContext<T>): T;
};

export type ProbeId =
	| 'gpus'
	| 'topology'
	| 'holders'
	| 'processes'
	| 'command-lines'
	| 'mounts'
	| 'services'
	| 'autostart'
	| 'acting'
	| 'kernel-log'
	| 'server'
	| 'extraction'
	| 'log'
	| 'files'
	| 'contents'
	| 'flags'
	| 'guest';

/**
 * Probes that share a lane wait for one another; a hung tool costs its own lane only. Seven of them, since a route has
 * eight channels and an abandoned one counts until it is seen closed.
 */
export type LaneName = 'driver' | 'processes' | 'mounts' | 'services' | 'files' | 'command-lines' | 'act';

/** `status` is the script's. Text is decoded as UTF-8 with replacement; `bytes` for what is not text. */
export type Answer = {
	readonly status: number;
	readonly stdout: string;
	readonly stderr: string;
	readonly bytes: Buffer;
};

export type ProbeContext<T> = {
	readonly target: Target;
	/** Newest good value, for probes that ask only for what is new. */
	readonly last: T | null;
	readonly hints: Hints;
};

/** What other facts say is worth looking at: cheap questions instead of whole tables. */
export type Hints = {
	/** Processes known to hold a GPU, to be stuck, or to be on screen. */
	readonly pids: readonly number[];
	/** Those of them that were uninterruptible when last seen. */
	readonly stuckPids: readonly number[];
	/** Those of them whose command line nobody has read yet. */
	readonly unreadLines: readonly number[];
	/** Units that own GPU holders. */
	readonly units: readonly string[];
	/** Newest launch record, so that the server probe knows its log and identity. */
	readonly serverLog: string | null;
	/** The package a launch would import, by its `packageKey`, where its source does not tell its flags. */
	readonly unreadPackage: string | null;
	/** Which log the log pane follows. */
	readonly log: string | null;
	readonly nowMs: number;
};

/** Of a console that knows nothing yet. */
export const NO_HINTS: Hints = {
	pids: [],
	stuckPids: [],
	unreadLines: [],
	units: [],
	serverLog: null,
	unreadPackage: null,
	log: null,
	nowMs: 0,
};

/** A process is boot id + pid + start ticks (field 22 of stat). A pid alone names nobody. */
export type Identity = {readonly bootId: string; readonly pid: number; readonly startTicks: number};

export const identityKey = (identity: {pid: number; startTicks: number}): string =>
	`${identity.pid}@${identity.startTicks}`;

/** Back from `PID@TICKS`; ticks are null where the key has none (`PID@?`). */
export function identityOf(key: string): {pid: number; startTicks: number | null} {
	const [, pid = '', ticks] = /^(\d+)@(\d+)?/.exec(key) ?? [];
	return {pid: Number(pid), startTicks: ticks === undefined ? null : Number(ticks)};
}

/** A number the tool may decline to give. `unknown` keeps the tool's own word (`[N/A]`, `[GPU requires reset]`). */
export type Known<T> = {readonly known: true; readonly value: T} | {readonly known: false; readonly why: string};
export const known = <T>(value: T): Known<T> => ({known: true, value});
export const unknown = (why: string): {readonly known: false; readonly why: string} => ({known: false, why});
