import {mkdirSync, readdirSync, rmSync, statSync} from 'node:fs';
import {rm} from 'node:fs/promises';
import {readBareTensor} from '../tensor/torch-reader.ts';
import type {Sample} from './dataset.ts';
import type {DumpWatch} from './dump-watch.ts';
import type {Finish} from './staged-file.ts';
import type {StateName, States} from './states.ts';

/** What a dump of the source patch holds, a file each; on which side of the norm its final lies, it does not say. */
const COUNTED_STATES = ['aux_0', 'aux_1', 'aux_2', 'final'] as const satisfies readonly StateName[];
/** The mark that all is written. */
const MARK = 'done';

/** Where dumps appear, how long after the answer one may take to be complete, and what wakes who waits for it. */
export type DumpPlace = {readonly dir: string; readonly limitMs: number; readonly watch: DumpWatch};

type AnyDump = {
	readonly paths: readonly string[];
	/** Which layers its states enter, where the dump says so. */
	readonly layers: string | null;
};

/** States in memory. */
export type RawDump = AnyDump & {readonly states: States};

/** A finished file but for its mask and sums, where it can be renamed into place. */
export type StagedDump = AnyDump & {
	readonly staged: string;
	/** Its states, by name. */
	readonly holds: readonly StateName[];
	/** Looks at every byte of it, and says what is to be filled in. Throws what makes it useless. */
	readonly inspect: (sample: Sample) => Finish;
	/** Its states, to compare with. Throws DamagedFile. */
	readonly read: () => States;
};

export type Dump = RawDump | StagedDump;

/** What a dump has to be to be ours. */
export type Wanted = {
	readonly rid: string;
	readonly rows: number;
	/** Token ids as little-endian int64. */
	readonly ids: Buffer;
	readonly hiddenSize: number;
	/** Where in the file its states will lie, of those that stand there as they come. */
	readonly places?: ReadonlyMap<StateName, number>;
};

/** Looks at the directory before a request; what it gives finds that request's dump afterwards. */
export type DumpSource = {
	/** Dumps carry the request's own name, so that several may be under way at once. */
	readonly named: boolean;
	/** How many states a dump holds. */
	readonly states: number;
	/** Where finished files appear instead of states; null: nowhere. */
	readonly staging: string | null;
	expect(wanted: Wanted): () => Promise<Dump>;
	close(): void;
};

/**
 * The source patch counts its requests and knows no names, and health probes and warm-up dump too. Ours is the one that
 * is new and has as many rows as the request had tokens: so nothing else of ours may be in flight, two candidates are
 * refused rather than guessed between, and one that is still being written is waited for before the choice.
 */
export const countedDumps = (place: DumpPlace): DumpSource => ({
	named: false,
	states: COUNTED_STATES.length,
	staging: null,
	close: () => place.watch.close(),
	expect(wanted) {
		// The patch makes its own directory below this one: that it vanished is no reason to stop.
		mkdirSync(place.dir, {recursive: true});
		const before = dumpsNow(place.dir);
		return () => findCounted(place, before, wanted);
	},
});

/** Request directories, with the time of the mark for those that are complete. */
function dumpsNow(directory: string): Map<string, number | null> {
	const names = readdirSync(directory).filter(name => name.startsWith('req_'));
	return new Map(names.map(name => [name, markedAt(`${directory}/${name}/${MARK}`)]));
}

function markedAt(path: string): number | null {
	return statSync(path, {throwIfNoEntry: false})?.mtimeMs ?? null;
}

async function findCounted(
	{dir, limitMs, watch}: DumpPlace,
	before: ReadonlyMap<string, number | null>,
	wanted: Wanted,
): Promise<Dump> {
	const until = Date.now() + limitMs;
	const pause = watch.pauses();
	const strangers = new Map<string, string>();
	const candidates = new Map<string, RawDump>();
	for (;;) {
		let unfinished = 0;
		for (const [name, finished] of dumpsNow(dir)) {
			if (finished === null && !before.has(name)) unfinished++;
			if (finished === null || before.get(name) === finished || strangers.has(name) || candidates.has(name)) continue;
			const read = readCounted(`${dir}/${name}`, wanted);
			if ('states' in read) candidates.set(name, read);
			else strangers.set(name, read.why);
		}
		const [only, ...others] = candidates.values();
		if (only && others.length > 0)
			throw new Error(`${candidates.size} new dumps have ${wanted.rows} rows: cannot tell which is ours`);
		if (only && unfinished === 0) return only;
		if (Date.now() > until) {
			if (only) throw new Error(`another new dump in ${dir} stays unfinished: cannot tell which is ours`);
			const seen = [...strangers].map(([name, why]) => `${name}: ${why}`).join('; ');
			const open = unfinished > 0 ? `; ${unfinished} new but unfinished` : '';
			throw new Error(`no dump with ${wanted.rows} rows appeared in ${dir}${seen ? ` (${seen})` : ''}${open}`);
		}
		await pause();
	}
}

function readCounted(path: string, {rows, hiddenSize}: Wanted): RawDump | {readonly why: string} {
	try {
		const states = COUNTED_STATES.map(name => {
			const {dtype, shape, data} = readBareTensor(`${path}/${name}.pt`);
			if (dtype !== 'BF16' || shape.length !== 2 || shape[1] !== hiddenSize) {
				throw new Error(`${name}.pt is ${dtype} [${shape.join(', ')}]`);
			}
			if (shape[0] !== rows) throw new Error(`${name}.pt has ${shape[0]} rows`);
			return [name, data];
		});
		return {paths: [path], states: Object.fromEntries(states), layers: null};
	} catch (error) {
		return {why: error instanceof Error ? error.message : String(error)};
	}
}

/** Bytes of all requests in the directory, finished or not, whoever asked for them. */
export function dumpedBytes(directory: string): number {
	const requests = readdirSync(directory).filter(name => name.startsWith('req_'));
	return requests.reduce((sum, name) => sum + bytesIn(`${directory}/${name}`), 0);
}

/** Of all files below a directory; none where there is no such directory. */
export function bytesIn(directory: string): number {
	let sum = 0;
	try {
		for (const entry of readdirSync(directory, {withFileTypes: true})) {
			const path = `${directory}/${entry.name}`;
			sum += entry.isDirectory() ? bytesIn(path) : (statSync(path, {throwIfNoEntry: false})?.size ?? 0);
		}
	} catch {
		// Not there, or taken away meanwhile.
	}
	return sum;
}

/** Only a dump that was read, is ours, and was stored or is good for nothing. */
export function removeDump({paths}: AnyDump): void {
	for (const path of paths) rmSync(path, {recursive: true, force: true});
}

/** The same in the background: to give back so much memory takes a while. */
export async function removeDumpSoon({paths}: AnyDump): Promise<void> {
	// A server that was started anew counts from the start, and may be writing under the same number.
	for (const path of paths) await rm(path, {recursive: true, force: true, maxRetries: 5, retryDelay: 50});
}
