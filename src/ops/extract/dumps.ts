import {readdirSync, rmSync, statSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {readBareTensor} from '../tensor/torch-reader.ts';

/** Names that a dump of the source patch has: three auxiliary states, the final one, and the mark that all is written. */
export const STATE_FILES = ['aux_0.pt', 'aux_1.pt', 'aux_2.pt', 'final.pt'] as const;
const MARK = 'done';

/** What was in the dump directory before a request: complete requests by name and age. */
export type DumpsBefore = ReadonlyMap<string, number>;

/** Where dumps appear, and how long after the answer one may take to be complete. */
export type DumpPlace = {readonly dir: string; readonly limitMs: number};

export type Dump = {readonly path: string; readonly states: readonly Buffer[]};

export function dumpsNow(directory: string): Map<string, number> {
	const found = new Map<string, number>();
	for (const name of readdirSync(directory)) {
		if (!name.startsWith('req_')) continue;
		const finished = markedAt(`${directory}/${name}`);
		if (finished !== null) found.set(name, finished);
	}
	return found;
}

function markedAt(path: string): number | null {
	try {
		return statSync(`${path}/${MARK}`).mtimeMs;
	} catch {
		return null;
	}
}

/**
 * The dump that one request left: new since `before`, complete, with as many rows as the request had tokens. The patch
 * counts its requests and knows no names, and health probes and warm-up dump too: so nothing else of ours may be in
 * flight, and two candidates are refused rather than guessed between.
 */
export async function findDump(
	{dir: directory, limitMs}: DumpPlace,
	before: DumpsBefore,
	rows: number,
	hiddenSize: number,
): Promise<Dump> {
	const until = Date.now() + limitMs;
	const strangers = new Map<string, string>();
	for (;;) {
		const candidates: Dump[] = [];
		for (const [name, finished] of dumpsNow(directory)) {
			if (before.get(name) === finished || strangers.has(name)) continue;
			const read = readDump(`${directory}/${name}`, rows, hiddenSize);
			if ('states' in read) candidates.push(read);
			else strangers.set(name, read.why);
		}
		const [only, ...others] = candidates;
		if (only && others.length > 0)
			throw new Error(`${candidates.length} new dumps have ${rows} rows: cannot tell which is ours`);
		if (only) return only;
		if (Date.now() > until) {
			const seen = [...strangers].map(([name, why]) => `${name}: ${why}`).join('; ');
			throw new Error(`no dump with ${rows} rows appeared in ${directory}${seen ? ` (${seen})` : ''}`);
		}
		await sleep(5);
	}
}

function readDump(path: string, rows: number, hiddenSize: number): Dump | {readonly why: string} {
	try {
		const states = STATE_FILES.map(name => {
			const {dtype, shape, data} = readBareTensor(`${path}/${name}`);
			if (dtype !== 'BF16' || shape.length !== 2 || shape[1] !== hiddenSize) {
				throw new Error(`${name} is ${dtype} [${shape.join(', ')}]`);
			}
			if (shape[0] !== rows) throw new Error(`${name} has ${shape[0]} rows`);
			return data;
		});
		return {path, states};
	} catch (error) {
		return {why: error instanceof Error ? error.message : String(error)};
	}
}

/** First layer with a NaN or an infinity, or null. bf16: all ones in the exponent. */
export function notFinite(states: readonly Buffer[]): number | null {
	for (const [layer, bytes] of states.entries()) {
		for (let at = 1; at < bytes.length; at += 2) {
			if (((bytes[at] ?? 0) & 0x7f) === 0x7f && (bytes[at - 1] ?? 0) >= 0x80) return layer;
		}
	}
	return null;
}

/** Only a dump that was read, stored and is ours. */
export const removeDump = (dump: Dump): void => rmSync(dump.path, {recursive: true, force: true});
