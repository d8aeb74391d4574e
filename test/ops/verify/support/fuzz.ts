import {readdirSync, readFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {DamagedFile} from '../../../../src/ops/tensor/damage.ts';
import {bufferSource} from '../../../../src/ops/tensor/source.ts';
import {tensorsOf} from '../../../../src/ops/tensor/torch-reader.ts';
import {unpickle} from '../../../../src/ops/tensor/unpickle.ts';
import {descriptor, directory, localHeader, planZip} from '../../../../src/ops/tensor/zip.ts';
import {readEntry, readZip} from '../../../../src/ops/tensor/zip-reader.ts';
import {checkSource} from '../../../../src/ops/verify/check-file.ts';
import type {Level} from '../../../../src/ops/verify/verdict.ts';

export type FuzzCount = {
	readonly runs: number;
	/** By target and verdict. */
	readonly verdicts: Readonly<Record<string, number>>;
	/** Changed files with checksums in which nothing was seen, not even a note. */
	readonly unseen: readonly string[];
	readonly slowestMs: number;
};

type Seed = {readonly name: string; readonly bytes: Buffer};

/** A pickle, and the storages that it wants as it was before. */
type PickleSeed = Seed & {readonly storages: ReadonlyMap<string, number>};

/** xorshift32: the same mutations on every machine. */
function random(seed: number): (below: number) => number {
	let state = seed | 1;
	return below => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) % below;
	};
}

const EXTREMES = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];

/** One or two changes: bits, bytes, numbers, runs of zeros, cuts, moves, repeats; mostly where structure lies. */
function mutate(bytes: Buffer, below: (limit: number) => number): Buffer {
	let result = Buffer.from(bytes);
	for (let left = 1 + below(2); left > 0 && result.length > 0; left--) {
		const {length} = result;
		const near = below(3);
		const span = Math.min(length, 1_024);
		const at = near === 0 ? below(span) : near === 1 ? length - 1 - below(span) : below(length);
		switch (below(8)) {
			case 0:
			case 1:
				result[at] = (result[at] ?? 0) ^ (1 << below(8));
				break;
			case 2:
				result[at] = below(256);
				break;
			case 3:
				if (at + 4 <= length) result.writeUInt32LE(EXTREMES[below(EXTREMES.length)] ?? 0, at);
				break;
			case 4:
				result.fill(0, at, Math.min(length, at + 1 + below(4_096)));
				break;
			case 5:
				result = result.subarray(0, at);
				break;
			case 6:
				result = Buffer.concat([
					result.subarray(0, at),
					result.subarray(below(length)).subarray(0, 200),
					result.subarray(at),
				]);
				break;
			default:
				result.copy(result, at, below(length), below(length));
		}
	}
	return result;
}

/** A torch file around a changed pickle, all checksums right and all storages there. */
function pack(text: Buffer, storages: ReadonlyMap<string, number>): Buffer {
	const entries: readonly (readonly [string, Buffer])[] = [
		['a/data.pkl', text],
		...[...storages].map(([key, bytes]) => [`a/data/${key}`, Buffer.alloc(bytes, 1)] as const),
		['a/version', Buffer.from('3\n')],
	];
	const plan = planZip(entries.map(([name, data]) => ({name, bytes: data.length})));
	const crcs = entries.map(([, data]) => crc32(data));
	const parts = plan.items.flatMap((item, at) => [
		localHeader(item),
		entries[at]?.[1] ?? text,
		descriptor(item, crcs[at] ?? 0),
	]);
	return Buffer.concat([...parts, directory(plan, crcs)]);
}

/** Mutates the fixtures and the pickles in them, `runs` times from `seed`. Throws what the checker lets through. */
export function fuzz(runs: number, seed: number, fixtures: string): FuzzCount {
	const below = random(seed);
	const files: Seed[] = readdirSync(fixtures)
		.filter(name => /\.(pt|ckpt|safetensors)$/.test(name))
		.map(name => ({name, bytes: readFileSync(`${fixtures}/${name}`)}));
	const pickles = files.flatMap(({name, bytes}) => picklesIn(name, bytes));
	const whole = new Set(files.filter(({name, bytes}) => isPlain(name, bytes)).map(({name}) => name));
	const verdicts: Record<string, number> = {};
	const unseen: string[] = [];
	let slowestMs = 0;
	for (let run = 0; run < runs; run++) {
		const startedAt = performance.now();
		const target = ['file', 'pickle', 'packed pickle'][run % 3] ?? 'file';
		const file = files[below(files.length)];
		const text = pickles[below(pickles.length)];
		if (!file || !text) continue;
		let verdict: string;
		if (target === 'pickle') verdict = read(mutate(text.bytes, below));
		else if (target === 'packed pickle') {
			verdict = look(text.name, pack(mutate(text.bytes, below), text.storages), 'crc').verdict.verdict;
		} else {
			const bytes = mutate(file.bytes, below);
			const found = look(file.name, bytes, 'values');
			verdict = found.verdict.verdict;
			const silent = verdict === 'done' && found.notes.length === 0;
			if (silent && whole.has(file.name) && !bytes.equals(file.bytes)) unseen.push(`${file.name} run ${run}`);
		}
		verdicts[`${target}: ${verdict}`] = (verdicts[`${target}: ${verdict}`] ?? 0) + 1;
		slowestMs = Math.max(slowestMs, performance.now() - startedAt);
	}
	return {runs, verdicts, unseen, slowestMs};
}

const look = (name: string, bytes: Buffer, level: Level) =>
	checkSource(bufferSource(bytes), name, {level, hidden: null, normWeight: null});

/** Good, with checksums, and as torch writes it: every change must be seen. */
function isPlain(name: string, bytes: Buffer): boolean {
	const {verdict, notes} = look(name, bytes, 'values');
	return !name.endsWith('.safetensors') && verdict.verdict === 'done' && notes.length === 0;
}

function read(text: Buffer): string {
	try {
		tensorsOf(unpickle(text));
		return 'read';
	} catch (error) {
		if (error instanceof DamagedFile) return 'refused';
		throw error;
	}
}

function picklesIn(name: string, bytes: Buffer): PickleSeed[] {
	try {
		const source = bufferSource(bytes);
		const zip = readZip(source);
		const entry = zip.entries.find(each => each.name.endsWith('/data.pkl'));
		if (!entry) return [];
		const storages = new Map<string, number>();
		for (const each of zip.entries) {
			const key = /\/data\/(\d+)$/.exec(each.name)?.[1];
			if (key !== undefined) storages.set(key, each.bytes);
		}
		return [{name, bytes: Buffer.from(readEntry(source, zip, entry)), storages}];
	} catch (error) {
		if (error instanceof DamagedFile) return [];
		throw error;
	}
}
