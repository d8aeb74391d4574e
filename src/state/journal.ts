import {constants} from 'node:fs';
import {type FileHandle, mkdir, open, readdir, readFile} from 'node:fs/promises';
import {join} from 'node:path';
import {redact} from '../ops/redact.ts';
import type {JournalEntry} from './state.ts';

/**
 * The journal tells what was asked for and what came of it, never what is true now. One NDJSON file per host and day,
 * appended; an intent is on disk before its act. A torn last line (kill -9, full disk) is left as it is: readers skip it.
 */
export type Journal = {
	/** Resolves when the entry is on disk. Rejects when it cannot be: then nothing may be done. */
	write(entry: JournalEntry): Promise<void>;
	/** Not worth waiting for: alerts, routes, outcomes. */
	note(entry: JournalEntry): void;
	readonly path: string;
	readonly state: 'ok' | 'off' | 'failing';
	close(): Promise<void>;
};

export async function openJournal(
	directory: string,
	host: string,
	operator: string,
	clock: () => number,
): Promise<Journal> {
	await mkdir(directory, {recursive: true, mode: 0o700});
	let state: Journal['state'] = 'ok';
	let day = '';
	let handle: FileHandle | null = null;
	let path = pathOf(directory, host, clock());
	let queue: Promise<unknown> = Promise.resolve();

	async function append(entry: JournalEntry, durable: boolean): Promise<void> {
		const today = dayOf(entry.at);
		if (today !== day || !handle) {
			await handle?.close();
			path = pathOf(directory, host, entry.at);
			handle = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600);
			day = today;
		}
		const line = JSON.stringify({...entry, operator, at: new Date(entry.at).toISOString()}, (_, value) =>
			typeof value === 'string' ? redact(value) : value,
		);
		await handle.appendFile(`${line}\n`);
		if (durable) await handle.sync();
	}

	function enqueue(entry: JournalEntry, durable: boolean): Promise<void> {
		const done = queue
			.then(() => append(entry, durable))
			.then(
				() => {
					state = 'ok';
				},
				error => {
					state = 'failing';
					throw error;
				},
			);
		queue = done.catch(() => {});
		return done;
	}

	return {
		write: entry => enqueue(entry, true),
		note(entry) {
			enqueue(entry, false).catch(() => {});
		},
		get path() {
			return path;
		},
		get state() {
			return state;
		},
		async close() {
			await queue;
			await handle?.close();
		},
	};
}

/** For commands that only look. */
export const noJournal: Journal = {
	write: async () => {
		throw new Error('no journal is open');
	},
	note() {},
	path: '',
	state: 'off',
	close: async () => {},
};

/** What was written: an entry with who wrote it. */
export type WrittenEntry = JournalEntry & {readonly operator: string};

/** Days of a host that have a journal, oldest first. No directory is no day. */
export async function journalDays(directory: string, host: string): Promise<readonly string[]> {
	const names = await readdir(directory).catch(() => []);
	const prefix = `${fileName(host)}-`;
	return names
		.flatMap(name =>
			name.startsWith(prefix) ? (/^(\d{4}-\d{2}-\d{2})\.ndjson$/.exec(name.slice(prefix.length))?.[1] ?? []) : [],
		)
		.sort();
}

/** Entries of one day, oldest first. A line that is torn or foreign is passed over. */
export async function readJournal(directory: string, host: string, day: string): Promise<readonly WrittenEntry[]> {
	const text = await readFile(join(directory, `${fileName(host)}-${day}.ndjson`), 'utf8');
	return text.split('\n').flatMap(parseLine);
}

function parseLine(line: string): readonly WrittenEntry[] {
	if (line === '') return [];
	try {
		const value: unknown = JSON.parse(line);
		if (typeof value !== 'object' || value === null || !('at' in value) || !('words' in value)) return [];
		const at = Date.parse(String(value.at));
		return Number.isNaN(at) ? [] : [{...(value as WrittenEntry), at}];
	} catch {
		return [];
	}
}

const fileName = (host: string) => host.replace(/[^A-Za-z0-9_.-]/g, '_');

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

const pathOf = (directory: string, host: string, at: number) =>
	join(directory, `${fileName(host)}-${dayOf(at)}.ndjson`);
