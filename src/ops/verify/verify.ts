import {availableParallelism} from 'node:os';
import {resolve} from 'node:path';
import {crc32} from 'node:zlib';
import type {CheckedFile} from './check-file.ts';
import {type Claim, compareWithDataset, type DatasetVerdict} from './dataset-check.ts';
import {sampleIndex} from './names.ts';
import {checkFiles} from './pool.ts';
import {type Question, Remembered} from './remembered.ts';
import {StoredSums} from './stored-sums.ts';
import {type Found, findFiles, firstIndex, holesIn, treeOf} from './tree.ts';
import {atLeast, type Findings, type Level, type Verdict} from './verdict.ts';

export type VerifyOptions = {
	readonly level: Level;
	/** File with the samples that the trees are made from; null without one. */
	readonly dataset: string | null;
	readonly hidden: number | null;
	readonly normWeight: Float32Array | null;
	readonly workers: number;
	readonly stop?: AbortSignal;
};

export type Judged = Found & Findings & {readonly index: number | null};

export type Verified = {
	readonly files: readonly Judged[];
	/** Runs of missing indices, ends included. */
	readonly holes: readonly (readonly [number, number])[];
	readonly bytes: number;
	/** Of the files that were looked at in this run. */
	readonly freshBytes: number;
	readonly seconds: number;
	/** How many results are of an earlier run. */
	readonly remembered: number;
	/** Why results could not be kept, if so. */
	readonly troubles: readonly string[];
};

export type Progress = {
	readonly files: number;
	readonly doneFiles: number;
	/** Of the files that are looked at in this run. */
	readonly bytes: number;
	readonly doneBytes: number;
	readonly suspects: number;
};

export const DEFAULT_WORKERS = Math.min(2, availableParallelism());
/** Below this a thread takes longer to start than the work. */
const WORTH_A_THREAD_BYTES = 64_000_000;
const WORTH_A_THREAD_FILES = 2_000;

/**
 * Looks at every tensor file under the paths, once per file and level: results are kept beside each tree as they come, so
 * that a run goes on where a killed one was. Throws MissingPath, UnreadableDirectory; rejects with DatasetError.
 */
export async function verify(
	paths: readonly string[],
	options: VerifyOptions,
	tell: (progress: Progress) => void = () => {},
): Promise<Verified> {
	const startedAt = performance.now();
	const {files, directories} = findFiles(paths);
	const question = questionOf(options);
	const memories = new Map(directories.map(each => [resolve(treeOf(each)), new Remembered(treeOf(each))]));
	const memoryOf = ({tree}: Found) => memories.get(resolve(tree));
	const results = new Map<string, Findings>();
	for (const file of files) {
		const known = memoryOf(file)?.recall(file.path, file.identity, question);
		if (known) results.set(file.path, known);
	}
	const remembered = results.size;
	const open = new Map(files.filter(({path}) => !results.has(path)).map(file => [file.path, file]));
	const bytes = sumOf([...open.values()]);
	let doneBytes = 0;
	let suspects = [...results.values()].filter(({verdict}) => verdict.verdict === 'suspect').length;
	const stored = new Map<string, StoredSums>();
	const take = ({sum, ...looked}: CheckedFile): void => {
		const file = open.get(looked.path);
		const found = {
			...looked,
			verdict: sum === undefined || !file ? looked.verdict : sumsOf(file).judge({...looked, sum}),
		};
		results.set(found.path, found);
		doneBytes += found.identity.bytes;
		if (found.verdict.verdict === 'suspect') suspects++;
		if (file) memoryOf(file)?.keep(found, question);
		tell({files: open.size, doneFiles: results.size - remembered, bytes, doneBytes, suspects});
	};
	/** Read when the first file asks: most trees hold their own sums. */
	const sumsOf = ({tree}: Found): StoredSums => {
		const sums = stored.get(tree) ?? new StoredSums(tree);
		stored.set(tree, sums);
		return sums;
	};
	try {
		await checkFiles([...open.keys()], options, threadsFor(open.size, bytes, options), take, options.stop);
	} finally {
		for (const memory of memories.values()) memory.close();
	}
	const judged = files.flatMap(file => {
		const findings = results.get(file.path);
		return findings ? [{...file, ...pick(findings), index: sampleIndex(nameOf(file.path))}] : [];
	});
	const dataset = options.dataset === null ? null : await compareWithDataset(options.dataset, claimsOf(judged));
	return {
		files: dataset ? judged.map(file => ({...file, verdict: changed(file, dataset)})) : judged,
		holes: directories.length > 0 || dataset ? holesOf(judged, directories, dataset) : [],
		bytes: sumOf(files),
		freshBytes: doneBytes,
		seconds: (performance.now() - startedAt) / 1_000,
		remembered,
		troubles: [...memories.values()].flatMap(({trouble}) => trouble ?? []),
	};
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const sumOf = (files: readonly Found[]): number => files.reduce((sum, {identity}) => sum + identity.bytes, 0);

/** What a worker or a kept line knows beside that is dropped. */
const pick = ({verdict, tokens, ids, normChecked, notes}: Findings): Findings => ({
	verdict,
	tokens,
	ids,
	normChecked,
	notes,
});

function questionOf({level, hidden, normWeight}: VerifyOptions): Question {
	const norm = normWeight ? String(crc32(Buffer.from(normWeight.buffer))) : null;
	return {level, hidden, norm: level === 'values' ? norm : null};
}

function threadsFor(files: number, bytes: number, {level, workers}: VerifyOptions): number {
	if (files < 2) return 0;
	const worth = atLeast(level, 'crc') ? bytes >= WORTH_A_THREAD_BYTES : files >= WORTH_A_THREAD_FILES;
	return worth ? workers : 0;
}

function claimsOf(files: readonly Judged[]): Map<number, Claim[]> {
	const claims = new Map<number, Claim[]>();
	for (const {index, path, tokens, ids, verdict} of files) {
		if (index === null) continue;
		const emptyMask = verdict.verdict === 'suspect' && verdict.reason === 'mask';
		const others = claims.get(index) ?? [];
		claims.set(index, [...others, {path, tokens, ids, emptyMask}]);
	}
	return claims;
}

/** The file's own trouble comes first; the dataset may add one, or clear a mask that is empty there, too. */
function changed({path, verdict}: Judged, {changes}: DatasetVerdict): Verdict {
	const change = changes.get(path);
	if (change === null) return {verdict: 'done'};
	return change && verdict.verdict !== 'suspect' ? change : verdict;
}

function holesOf(files: readonly Judged[], directories: readonly string[], dataset: DatasetVerdict | null) {
	const first = firstIndex(directories);
	// A group by itself is not asked for the records of other groups.
	const records = dataset && first === 0 ? dataset.records : null;
	const present = new Set(dataset?.empty);
	for (const {index} of files) if (index !== null && index < (records ?? Number.POSITIVE_INFINITY)) present.add(index);
	return holesIn(present, first, records);
}
