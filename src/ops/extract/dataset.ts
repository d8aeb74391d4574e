import {createHash} from 'node:crypto';
import {closeSync, openSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {DamagedFile} from '../tensor/damage.ts';
import {fileSource} from '../tensor/source.ts';
import {DatasetError, readObjects} from './json-objects.ts';

export {DatasetError} from './json-objects.ts';

/** One sample, with its place in the file: that index is its name for ever, also when others are left out. */
export type Sample = {
	readonly index: number;
	readonly inputIds: readonly number[];
	readonly lossMask: readonly number[];
};

export type Cap = {readonly maxTokens: number; readonly overlength: 'truncate' | 'filter'};

/** The file is not the one that was read at the start of the run. */
export class DatasetChanged extends Error {}

const DIGEST_BYTES = 16;

/** Samples in file order, one in memory at a time. `input_ids` are token ids; without `loss_mask` every token counts. */
export async function* readSamples(path: string): AsyncGenerator<Sample> {
	let index = 0;
	for await (const {bytes} of readObjects(path)) yield toSample(bytes, index++);
}

/**
 * What one pass over the dataset leaves behind: sums, and per record its place, its length after the cap and its hashes;
 * some 60 bytes a record. Afterwards a plain file is read only where a sample is wanted; a packed one has to be unpacked
 * again up to it.
 */
export class Dataset {
	sha256 = '';
	/** SHA-256 over the id hashes in order: the same for the same samples in another form of file. */
	order = '';
	private readonly places: number[] = [];
	private readonly lengths: number[] = [];
	private readonly sums: number[] = [];
	private readonly tokenCounts: number[] = [];
	private digests = Buffer.alloc(DIGEST_BYTES * 1_024);

	private constructor(
		readonly path: string,
		private readonly cap: Cap,
	) {}

	/** Rejects with DatasetError or the read's own error. `beat` is called per record. */
	static async scan(path: string, cap: Cap, beat: () => Promise<void> | void = () => {}): Promise<Dataset> {
		const dataset = new Dataset(path, cap);
		const order = createHash('sha256');
		const told = (sha256: string): void => {
			dataset.sha256 = sha256;
		};
		for await (const {offset, bytes} of readObjects(path, told)) {
			const sample = capped(toSample(bytes, dataset.records), cap);
			dataset.keep(offset, bytes, sample);
			order.update(dataset.digest(dataset.records - 1));
			await beat();
		}
		dataset.order = order.digest('hex');
		return dataset;
	}

	get records(): number {
		return this.places.length;
	}

	/** Tokens to extract; 0 for a record that is left out. */
	tokens(index: number): number {
		return this.tokenCounts[index] ?? 0;
	}

	/** First half of the SHA-256 of the ids to extract. */
	digest(index: number): Buffer {
		return this.digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);
	}

	/** These samples in the order asked for, which is ascending for a packed file. Rejects with DatasetChanged. */
	async *samples(indices: readonly number[]): AsyncGenerator<Sample> {
		if (this.path.endsWith('.gz')) yield* this.unpacked(indices);
		else for (const index of indices) yield this.read(index);
	}

	async one(index: number): Promise<Sample> {
		for await (const sample of this.samples([index])) return sample;
		throw this.changed(index);
	}

	private read(index: number): Sample {
		const fd = openSync(this.path, 'r');
		try {
			return this.same(fileSource(fd).read(this.places[index] ?? 0, this.lengths[index] ?? 0), index);
		} catch (error) {
			if (error instanceof DamagedFile) throw this.changed(index);
			throw error;
		} finally {
			closeSync(fd);
		}
	}

	private async *unpacked(indices: readonly number[]): AsyncGenerator<Sample> {
		const wanted = new Set(indices);
		let at = 0;
		for await (const {bytes} of readObjects(this.path)) {
			if (wanted.delete(at)) yield this.same(bytes, at);
			at++;
			if (wanted.size === 0) return;
		}
		for (const index of wanted) throw this.changed(index);
	}

	private same(bytes: Buffer, index: number): Sample {
		if (crc32(bytes) !== this.sums[index]) throw this.changed(index);
		const sample = capped(toSample(bytes, index), this.cap);
		if (sample === null || !digestOf(sample.inputIds).equals(this.digest(index))) throw this.changed(index);
		return sample;
	}

	private changed(index: number): DatasetChanged {
		return new DatasetChanged(`${this.path} changed under the run: record ${index} is not what it was`);
	}

	private keep(offset: number, bytes: Buffer, sample: Sample | null): void {
		const at = this.records;
		if ((at + 1) * DIGEST_BYTES > this.digests.length)
			this.digests = Buffer.concat([this.digests], at * 2 * DIGEST_BYTES);
		digestOf(sample?.inputIds ?? []).copy(this.digests, at * DIGEST_BYTES);
		this.places.push(offset);
		this.lengths.push(bytes.length);
		this.sums.push(crc32(bytes));
		this.tokenCounts.push(sample?.inputIds.length ?? 0);
	}
}

/** Cut to the limit, or left out when over it; a record without tokens is left out too. */
function capped(sample: Sample, {maxTokens, overlength}: Cap): Sample | null {
	const {index, inputIds, lossMask} = sample;
	if (inputIds.length === 0) return null;
	if (inputIds.length <= maxTokens) return sample;
	if (overlength === 'filter') return null;
	return {index, inputIds: inputIds.slice(0, maxTokens), lossMask: lossMask.slice(0, maxTokens)};
}

const digestOf = (ids: readonly number[]): Buffer =>
	createHash('sha256').update(int64(ids)).digest().subarray(0, DIGEST_BYTES);

export function int64(values: readonly number[]): Buffer {
	const words = new Int32Array(values.length * 2);
	let at = 0;
	for (const value of values) {
		words[at++] = value;
		words[at++] = Math.floor(value / 2 ** 32);
	}
	return Buffer.from(words.buffer);
}

function toSample(bytes: Buffer, index: number): Sample {
	let record: unknown;
	try {
		record = JSON.parse(bytes.toString('utf8'));
	} catch (error) {
		throw new DatasetError(`record ${index}: ${error instanceof Error ? error.message : error}`);
	}
	const {input_ids: inputIds, loss_mask: lossMask} = record as {input_ids?: unknown; loss_mask?: unknown};
	if (!isNumbers(inputIds)) throw new DatasetError(`record ${index}: input_ids is not a list of token ids`);
	if (lossMask === undefined || lossMask === null) return {index, inputIds, lossMask: inputIds.map(() => 1)};
	if (!isNumbers(lossMask) || lossMask.length !== inputIds.length) {
		throw new DatasetError(`record ${index}: loss_mask does not fit its input_ids`);
	}
	return {index, inputIds, lossMask};
}

const isNumbers = (value: unknown): value is number[] =>
	Array.isArray(value) && value.every(each => Number.isSafeInteger(each) && each >= 0);
