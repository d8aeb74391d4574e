import type {Known} from './probe.ts';

/** The model server as the host shows it. Liveness is tokens advancing; a wrapper that lives over a dead server is dead. */
export type ServerFacts = {
	readonly record: LaunchRecord | null;
	/** The recorded identity now. `other`: the pid belongs to somebody else, or the boot id differs. */
	readonly process: 'none' | 'alive' | 'gone' | 'other' | 'zombie' | 'wrapper only';
	readonly phase: ServerPhase;
	readonly shards: {readonly done: number; readonly total: number} | null;
	/** Epoch ms of the first log line of this phase as far as it is known, to tell stalls. */
	readonly phaseSince: number | null;
	readonly failure: ServerFailure | null;
	readonly logSizeBytes: number | null;
	readonly logModifiedAt: number | null;
	readonly tail: readonly string[];
	/** Who listens on the configured port; null: nobody. Unknown without a tool that tells. */
	readonly portOwner: Known<{readonly pid: number | null; readonly name: string} | null>;
	readonly tokensPerSecond: number | null;
	readonly cachedTokens: number | null;
	/** Answer to HTTP from the host's loopback, when asked. */
	readonly health: Known<number>;
};

export type ServerPhase =
	| 'none'
	| 'arguments'
	| 'distributed'
	| 'loading'
	| 'memory'
	| 'http'
	| 'ready'
	| 'serving'
	| 'dead'
	| 'unknown';

export type ServerFailure = {readonly class: string; readonly line: string; readonly advice: string};

/** What a launch leaves behind on the host: enough to find, name and stop exactly that server and no other. */
export type LaunchRecord = {
	readonly launchId: string;
	readonly bootId: string;
	readonly pid: number;
	readonly startTicks: number;
	readonly unit: string | null;
	readonly port: number;
	readonly argv: readonly string[];
	readonly log: string;
	readonly at: number;
};
