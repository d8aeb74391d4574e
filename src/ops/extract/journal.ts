import {closeSync, existsSync, openSync, readFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {fileSource} from '../tensor/source.ts';
import {type FileMark, type FilePort, writeAll} from './file-port.ts';

/** How far a file was looked at when it was found to be right. `stored`: this program wrote it and saw it synced. */
export type Proof = 'stored' | 'structure' | 'full';

/** One line. Entries of one index replace one another; the last one counts. */
export type JournalEntry =
	| {readonly run: 'started'; readonly pid: number; readonly bootId: string; readonly tool: string; readonly at: number}
	| {readonly run: 'ended'; readonly state: string; readonly at: number}
	| (FileMark & {
			readonly index: number;
			readonly tokens: number;
			readonly proof: Proof;
			readonly crc32?: string;
			/** SHA-256 of the token ids as little-endian int64. */
			readonly ids?: string;
			readonly at: number;
	  })
	| (FileMark & {readonly index: number; readonly suspect: string; readonly at: number})
	| {readonly index: number; readonly quarantined: string; readonly reason: string; readonly at: number}
	| {readonly index: number; readonly failed: string; readonly times: number; readonly at: number};

export type Failure = {readonly times: number; readonly reason: string};

/** `crc32`: of the whole file, in hexadecimal; of files that this program wrote. */
export type StoredMark = FileMark & {readonly proof: Proof; readonly crc32?: string};

/** What the journal knows. `clean`: the last run came to its end by itself, so nothing was in the air. */
export type JournalFacts = {
	readonly marks: ReadonlyMap<number, StoredMark>;
	/** Files that were found wanting and are still in place: a lighter look must not clear them. */
	readonly suspects: ReadonlyMap<number, FileMark & {readonly reason: string}>;
	readonly failures: ReadonlyMap<number, Failure>;
	readonly clean: boolean;
};

/** A line that is torn or foreign says nothing and is passed over. No file is an empty journal. */
export function readJournal(path: string): JournalFacts {
	const marks = new Map<number, StoredMark>();
	const suspects = new Map<number, FileMark & {reason: string}>();
	const failures = new Map<number, Failure>();
	let clean = false;
	for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
		const entry = parse(line);
		if (entry === null) continue;
		if ('run' in entry) clean = entry.run === 'ended' && entry.state !== 'failed';
		else if ('suspect' in entry) {
			const {bytes, mtimeMs, inode, suspect: reason} = entry;
			suspects.set(entry.index, {bytes, mtimeMs, inode, reason});
			marks.delete(entry.index);
		} else if ('bytes' in entry) {
			const {bytes, mtimeMs, inode, proof, crc32} = entry;
			marks.set(entry.index, {bytes, mtimeMs, inode, proof, ...(crc32 !== undefined && {crc32})});
			failures.delete(entry.index);
			suspects.delete(entry.index);
		} else if ('failed' in entry) failures.set(entry.index, {times: entry.times ?? 1, reason: entry.failed});
		else {
			marks.delete(entry.index);
			suspects.delete(entry.index);
		}
	}
	return {marks, suspects, failures, clean};
}

function parse(line: string): JournalEntry | null {
	if (line === '') return null;
	try {
		const entry: unknown = JSON.parse(line);
		if (typeof entry !== 'object' || entry === null || !('run' in entry || 'index' in entry)) return null;
		return entry as JournalEntry;
	} catch {
		return null;
	}
}

/** Append-only record of what was stored; lines are on the disk before `add` returns. */
export class Journal {
	private readonly fd: number;
	private torn: boolean;

	constructor(
		private readonly files: FilePort,
		path: string,
	) {
		this.torn = endsTorn(path);
		this.fd = files.append(path);
		files.syncDirectory(dirname(path));
	}

	/** One sync for all of them. Throws what the file system says; the next line then starts on a line of its own. */
	add(...entries: readonly JournalEntry[]): void {
		if (entries.length === 0) return;
		this.append(entries);
		this.files.sync(this.fd);
	}

	private append(entries: readonly JournalEntry[]): void {
		const text = entries.map(entry => `${JSON.stringify(entry)}\n`).join('');
		const start = this.torn ? '\n' : '';
		this.torn = true;
		writeAll(this.files, this.fd, [Buffer.from(start + text)]);
		this.torn = false;
	}

	/** The same with the sync in the background; not to be called again before it has ended. */
	async addSoon(entries: readonly JournalEntry[]): Promise<void> {
		this.append(entries);
		await this.files.settle(this.fd);
	}

	close(): void {
		this.files.close(this.fd);
	}
}

function endsTorn(path: string): boolean {
	if (!existsSync(path)) return false;
	const fd = openSync(path, 'r');
	try {
		const source = fileSource(fd);
		return source.size > 0 && source.read(source.size - 1, 1)[0] !== 0x0a;
	} finally {
		closeSync(fd);
	}
}
