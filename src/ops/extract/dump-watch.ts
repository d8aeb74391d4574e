import {statSync} from 'node:fs';
import {basename} from 'node:path';
import type {FSWatcher} from 'chokidar';

export type WatchIo = {
	/** How long a watched directory is trusted to tell by itself. */
	readonly slowMs: number;
	/** First pause while nothing watches; each further one is longer, up to `mostMs`. */
	readonly fastMs: number;
	readonly mostMs: number;
	/** After a watcher failed, none is tried for so long. */
	readonly againMs: number;
	readonly watch: (directory: string) => Promise<FSWatcher>;
};

/** What tells that a dump is whole, or that there will be none; the rest of it is written before. */
const SIGN = /(^|\/)(meta\.json|error\.json|done)$|\.ready$/;
/** What the hook has not finished. */
const BUILDING = /\/\.req_[^/]*\.tmp(\/|$)/;

export const systemWatch: WatchIo = {
	slowMs: 250,
	fastMs: 5,
	mostMs: 200,
	againMs: 10_000,
	async watch(directory) {
		const {watch} = await import('chokidar');
		return watch(directory, {
			persistent: false,
			ignoreInitial: true,
			// A request's directory, and the parts below it.
			depth: 2,
			ignored: (path, stats) => BUILDING.test(path) || (stats?.isFile() === true && !SIGN.test(path)),
		});
	},
};

/** One directory: `watcher` is null while nothing watches it. */
type Watched = {
	readonly directory: string;
	watcher: FSWatcher | null;
	identity: string | null;
	/** One is being set up. */
	busy: boolean;
	notBefore: number;
};

/**
 * Wakes those who wait for something in directories. Watching is a help only: it may fail, and the directories may vanish
 * and come back; then those who wait look by themselves, often at first. Does not keep the process alive.
 */
export class DumpWatch {
	private readonly watched: readonly Watched[];
	private readonly waiting = new Set<() => void>();
	private closed = false;

	constructor(
		directories: readonly string[],
		private readonly io: WatchIo = systemWatch,
	) {
		this.watched = directories.map(directory => ({
			directory,
			watcher: null,
			identity: null,
			busy: false,
			notBefore: 0,
		}));
	}

	/** Pauses of somebody who waits: each ends with a change, or after a while. */
	pauses(): () => Promise<void> {
		let pauseMs = this.io.fastMs;
		return () => {
			for (const each of this.watched) void this.keepWatching(each);
			const trusted = this.watched.every(({watcher}) => watcher !== null);
			const limitMs = trusted ? this.io.slowMs : pauseMs;
			if (!trusted) pauseMs = Math.min(pauseMs * 1.5, this.io.mostMs);
			return this.change(limitMs);
		};
	}

	close(): void {
		this.closed = true;
		for (const each of this.watched) this.drop(each);
	}

	private change(limitMs: number): Promise<void> {
		return new Promise(resolve => {
			const wake = (): void => {
				clearTimeout(timer);
				this.waiting.delete(wake);
				resolve();
			};
			const timer = setTimeout(wake, limitMs);
			this.waiting.add(wake);
		});
	}

	private wakeAll(): void {
		for (const wake of [...this.waiting]) wake();
	}

	/** A directory that was replaced has another identity, and its old watcher hears nothing. */
	private async keepWatching(each: Watched): Promise<void> {
		const identity = identityOf(each.directory);
		if (each.watcher && identity === each.identity) return;
		this.drop(each);
		if (identity === null || each.busy || this.closed || Date.now() < each.notBefore) return;
		each.busy = true;
		try {
			const watcher = await this.io.watch(each.directory);
			watcher.once('ready', () => this.trust(each, watcher, identity));
			watcher.on('all', () => this.wakeAll());
			// That the directory itself went is told only here, under its own name; a new one may have the inode of the old.
			watcher.on('raw', (event, name) => {
				if (event !== 'rename' || name !== basename(each.directory) || each.watcher !== watcher) return;
				this.drop(each);
				this.wakeAll();
			});
			watcher.on('error', () => this.distrust(each, watcher));
		} catch {
			this.distrust(each, null);
		}
	}

	private trust(each: Watched, watcher: FSWatcher, identity: string): void {
		each.busy = false;
		if (this.closed || Date.now() < each.notBefore) {
			void watcher.close();
			return;
		}
		each.watcher = watcher;
		each.identity = identity;
		// What came before it was ready was not told.
		this.wakeAll();
	}

	private distrust(each: Watched, watcher: FSWatcher | null): void {
		void watcher?.close();
		each.watcher = null;
		each.busy = false;
		each.notBefore = Date.now() + this.io.againMs;
		this.wakeAll();
	}

	private drop(each: Watched): void {
		void each.watcher?.close();
		each.watcher = null;
	}
}

function identityOf(directory: string): string | null {
	const stat = statSync(directory, {throwIfNoEntry: false});
	return stat ? `${stat.dev} ${stat.ino}` : null;
}
