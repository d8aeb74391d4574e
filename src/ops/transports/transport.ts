import type {Readable, Writable} from 'node:stream';
import type {Command} from '../command.ts';
import type {Failure, Outcome} from '../outcome.ts';

/**
 * Words. A *transport* is one way to start a program on a host: local, ssh, or through (another transport plus an
 * argument prefix). A *channel* is one started program with its three pipes. A *lane* (lane.ts) is a channel that runs
 * one long-lived `sh` and answers one request at a time. A *host* (host.ts) holds the routes in order, opens lanes on
 * the one that works, and is the only thing the rest of the program talks to.
 */
export type Transport = {
	/** For the header: `local`, `ssh root@pve.example`, `… pct exec 129`. */
	readonly label: string;
	readonly environment: Environment;
	/**
	 * Starts `command`. The limit starts now: it covers connect, authentication, waiting for a free channel and opening it.
	 * `urgent` (an act of the operator) goes before every look that waits.
	 */
	open(command: Command, limitMs: number, urgent?: boolean): Promise<Outcome<Channel>>;
	/** Why a program was never started, where what came in its stead says so; null when that says nothing. */
	explain?(said: string): Failure | null;
	/** While the operator is asked something that opening needs: resolves when opening again makes sense. */
	readonly asking?: Promise<void> | null;
	/** Opening again after `close` connects anew. */
	close(): void;
};

export type Channel = {
	readonly stdin: Writable;
	readonly stdout: Readable;
	readonly stderr: Readable;
	/** Resolves once, never rejects. */
	readonly ended: Promise<ChannelEnd>;
	/** Let go without waiting: pipes destroyed, nothing held, the far program left to end by itself. */
	abandon(): void;
};

/** How a program ended. `lost`: no status came at all, so its outcome is unknown. Never folded into a number. */
export type ChannelEnd =
	| {readonly kind: 'exit'; readonly code: number}
	| {readonly kind: 'signal'; readonly signal: string}
	| {readonly kind: 'lost'; readonly detail: string};

/** What a route fixes for everything that runs on it. Nothing is taken from the operator's own environment. */
export type Environment = {
	readonly path: string;
	readonly home: string;
	/** Roots that scripts use as $PROC, $DEV, $SYS, $ETC. */
	readonly proc: string;
	readonly dev: string;
	readonly sys: string;
	readonly etc: string;
};

export const SYSTEM_ENVIRONMENT: Environment = {
	path: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
	home: '/root',
	proc: '/proc',
	dev: '/dev',
	sys: '/sys',
	etc: '/etc',
};
