import {crc32} from 'node:zlib';
import {readSamples, type Sample} from '../extract/dataset.ts';
import {type Suspect, suspect} from './verdict.ts';

/** What a file says of the sample it holds. */
export type Claim = {
	readonly path: string;
	readonly tokens: number | null;
	readonly ids: number | null;
	readonly emptyMask: boolean;
};

export type DatasetVerdict = {
	readonly records: number;
	/** Records without tokens: no file is to be expected. */
	readonly empty: ReadonlySet<number>;
	/** By path: what is wrong with the file, or null where the dataset clears it of an empty mask. */
	readonly changes: ReadonlyMap<string, Suspect | null>;
};

/**
 * Compares files, by the index of their sample, with the dataset in one pass, one record in memory. Files may be cut to a
 * longest length, which is then the same for all of them. Rejects with DatasetError or the read's own error.
 */
export async function compareWithDataset(
	dataset: string,
	claims: ReadonlyMap<number, readonly Claim[]>,
): Promise<DatasetVerdict> {
	let longest = 0;
	for (const files of claims.values()) for (const {tokens} of files) longest = Math.max(longest, tokens ?? 0);
	const changes = new Map<string, Suspect | null>();
	const empty = new Set<number>();
	let records = 0;
	for await (const sample of readSamples(dataset)) {
		records = sample.index + 1;
		if (sample.inputIds.length === 0) empty.add(sample.index);
		for (const claim of claims.get(sample.index) ?? []) {
			const change = compare(sample, claim, longest);
			if (change !== undefined) changes.set(claim.path, change);
		}
	}
	for (const [index, files] of claims)
		if (index >= records)
			for (const {path} of files) changes.set(path, suspect('tokens', `the dataset has only ${records} records`));
	return {records, empty, changes};
}

function compare(
	{inputIds, lossMask}: Sample,
	{tokens, ids, emptyMask}: Claim,
	longest: number,
): Suspect | null | undefined {
	const wanted = inputIds.length;
	if (tokens !== null && tokens !== wanted && !(tokens === longest && wanted > longest))
		return suspect('tokens', `${tokens} tokens where the dataset has ${wanted}`);
	if (ids !== null && ids !== crcOfIds(inputIds.slice(0, tokens ?? wanted)))
		return suspect('ids', "ids are not the dataset's");
	return emptyMask && lossMask.slice(0, tokens ?? wanted).every(each => each === 0) ? null : undefined;
}

function crcOfIds(ids: readonly number[]): number {
	return crc32(Buffer.from(BigInt64Array.from(ids, BigInt).buffer));
}
