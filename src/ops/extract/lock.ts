import {linkSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {hostname} from 'node:os';
import {ownIdentity} from '../own-identity.ts';

/** Who writes into an output tree. A process is boot id, pid and start ticks; a host is its name. */
export type Writer = {
	readonly host: string;
	readonly bootId: string;
	readonly pid: number;
	readonly startTicks: number;
	readonly since: number;
};

export type LockResult =
	| {readonly taken: true; release(): void; readonly broken: Writer | null}
	| {readonly taken: false; readonly words: string};

/** This process, as others see it under `proc`. */
export function thisWriter(proc: string): Writer {
	return {
		host: hostname(),
		...ownIdentity(proc),
		since: Date.now(),
	};
}

const startTicks = (stat: string): number => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);

/**
 * One writer per tree. The lock appears whole (link of a finished file), so that of two starters exactly one wins. A lock
 * whose owner is gone is named and stays, unless `breakStale` says to take it over.
 */
export function takeLock(path: string, writer: Writer, proc: string, breakStale: boolean): LockResult {
	const made = `${path}.${writer.pid}.${writer.startTicks}`;
	writeFileSync(made, `${JSON.stringify(writer)}\n`);
	try {
		if (linked(made, path)) return {taken: true, broken: null, release: () => release(path, writer)};
		const owner = read(path);
		const words = nameOf(owner);
		if (owner === null || owner.host !== writer.host || alive(owner, writer, proc))
			return {taken: false, words: `another writer holds ${path}: ${words}`};
		if (!breakStale)
			return {
				taken: false,
				words: `a stale lock is in the way, ${path}: ${words}, which is gone; --break-lock takes it over`,
			};
		if (!takeOver(path, made, owner, writer, proc))
			return {taken: false, words: `another writer took over ${path} first: ${nameOf(read(path))}`};
		return {taken: true, broken: owner, release: () => release(path, writer)};
	} finally {
		rmSync(made, {force: true});
	}
}

const nameOf = (owner: Writer | null): string =>
	owner ? `pid ${owner.pid} on ${owner.host}, since ${new Date(owner.since).toISOString()}` : 'an unreadable lock';

/** false: there is one already. */
function linked(made: string, path: string): boolean {
	try {
		linkSync(made, path);
		return true;
	} catch (error) {
		if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
		throw error;
	}
}

/** Two that find the same stale lock must not remove each other's new one: only who holds the right to break may. */
function takeOver(path: string, made: string, stale: Writer, writer: Writer, proc: string): boolean {
	const right = `${path}.breaking`;
	if (!linked(made, right)) {
		const breaker = read(right);
		if (breaker === null || breaker.host !== writer.host || alive(breaker, writer, proc)) return false;
		rmSync(right, {force: true});
		if (!linked(made, right)) return false;
	}
	try {
		const owner = read(path);
		if (
			owner !== null &&
			(owner.pid !== stale.pid || owner.startTicks !== stale.startTicks || owner.bootId !== stale.bootId)
		)
			return false;
		rmSync(path, {force: true});
		return linked(made, path);
	} finally {
		rmSync(right, {force: true});
	}
}

function read(path: string): Writer | null {
	try {
		return JSON.parse(readFileSync(path, 'utf8'));
	} catch {
		return null;
	}
}

/** Unknown counts as alive: only a proof that it is gone makes a lock stale. */
function alive(owner: Writer, self: Writer, proc: string): boolean {
	if (owner.bootId !== self.bootId) return false;
	try {
		return startTicks(readFileSync(`${proc}/${owner.pid}/stat`, 'latin1')) === owner.startTicks;
	} catch (error) {
		return !(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'));
	}
}

function release(path: string, writer: Writer): void {
	const owner = read(path);
	if (owner?.pid === writer.pid && owner.startTicks === writer.startTicks) rmSync(path, {force: true});
}
