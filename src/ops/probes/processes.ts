/** Processes of the host's pid namespace, by pid. `cpuTicks` is cumulative: a rate needs two readings (`previous`). */
export type ProcessFacts = {
	readonly bootId: string;
	/** false with hidepid or a table without pid 1: only own processes are visible. */
	readonly complete: boolean;
	readonly ticksPerSecond: number;
	/** Host uptime in ticks when the table was read, for ages. */
	readonly uptimeTicks: number;
	readonly processes: readonly Process[];
	/** CPU fraction (0–1 of one core, may exceed 1) by identityKey, from this and the previous table. */
	readonly cpuFraction: ReadonlyMap<string, number>;
	/** CPU the far side spent on the last full scan, to pace the next one; and when that scan was asked for. */
	readonly scanMs: number;
	readonly scannedAt: number;
};

export type Process = {
	readonly pid: number;
	readonly startTicks: number;
	readonly parentPid: number;
	/** From stat: at most 15 bytes, raw (neutralise before drawing). */
	readonly name: string;
	/** R S D Z T t X I. */
	readonly state: string;
	readonly sessionId: number;
	readonly groupId: number;
	readonly cpuTicks: number;
	readonly threads: number;
	readonly residentBytes: number;
	readonly owner: Owner;
	readonly waitChannel: string | null;
	/** A SIGKILL is already pending: killing again changes nothing. */
	readonly killPending: boolean;
	/** Same state and wait channel in every table since (epoch ms); null when it moves. */
	readonly stuckSince: number | null;
};

/** Who keeps this process, from its cgroup: what has to be stopped instead of the process. */
export type Owner =
	| {readonly kind: 'unit'; readonly unit: string}
	| {readonly kind: 'user-unit'; readonly unit: string; readonly uid: number}
	| {readonly kind: 'session'; readonly session: string}
	| {readonly kind: 'container'; readonly engine: string; readonly id: string}
	| {readonly kind: 'guest'; readonly guest: string; readonly unit: string | null}
	| {readonly kind: 'none'}
	| {readonly kind: 'unknown'};
