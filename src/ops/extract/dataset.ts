import {createReadStream} from 'node:fs';
import type {Readable} from 'node:stream';
import {createGunzip} from 'node:zlib';

/** One sample, with its place in the file: that index is its name for ever, also when others are left out. */
export type Sample = {
	readonly index: number;
	readonly inputIds: readonly number[];
	readonly lossMask: readonly number[];
};

/** The dataset is not what it should be; says where. */
export class DatasetError extends Error {}

/** No sample of a training set is near this; beyond it the file is not what it is taken for. */
const MAX_RECORD_BYTES = 256 * 1024 * 1024;

const [OPEN_LIST, OPEN, CLOSE, CLOSE_LIST, QUOTE, ESCAPE, NEWLINE] = ['[', '{', '}', ']', '"', '\\', '\n'].map(char =>
	char.charCodeAt(0),
) as [number, number, number, number, number, number, number];

/**
 * Samples in file order, one in memory at a time. A JSON array of objects or one object per line, either also as `.gz`.
 * `input_ids` are token ids; without `loss_mask` every token counts. Rejects with DatasetError or the read's own error.
 */
export async function* readSamples(path: string): AsyncGenerator<Sample> {
	let index = 0;
	for await (const text of readObjects(path)) yield toSample(text, index++);
}

async function* readObjects(path: string): AsyncGenerator<string> {
	const file = createReadStream(path, {highWaterMark: 1024 * 1024});
	const bytes: Readable = path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
	if (bytes !== file) file.on('error', error => bytes.destroy(error));
	let kind: 'unknown' | 'array' | 'lines' = 'unknown';
	let depth = 0;
	let inString = false;
	let escaped = false;
	let kept: Buffer[] = [];
	let keptBytes = 0;
	for await (const piece of bytes) {
		const chunk: Buffer = piece;
		let start = depth > 0 ? 0 : -1;
		for (let at = 0; at < chunk.length; at++) {
			const byte = chunk[at];
			if (inString) {
				if (escaped) escaped = false;
				else if (byte === ESCAPE) escaped = true;
				else if (byte === QUOTE) inString = false;
			} else if (byte === QUOTE) inString = depth > 0;
			else if (byte === OPEN || (byte === OPEN_LIST && depth > 0)) {
				if (kind === 'unknown') kind = 'lines';
				if (depth++ === 0) start = at;
			} else if (byte === OPEN_LIST && kind === 'unknown') kind = 'array';
			else if (byte === CLOSE || byte === CLOSE_LIST) {
				if (depth === 0) {
					if (kind === 'array' && byte === CLOSE_LIST) return;
					throw new DatasetError(`${path}: a closing bracket where none belongs`);
				}
				if (--depth === 0) {
					yield Buffer.concat([...kept, chunk.subarray(start, at + 1)]).toString('utf8');
					kept = [];
					keptBytes = 0;
					start = -1;
				}
			} else if (
				depth === 0 &&
				byte !== undefined &&
				byte > 0x20 &&
				byte !== 0x2c &&
				byte !== 0xef &&
				byte !== 0xbb &&
				byte !== 0xbf
			) {
				throw new DatasetError(`${path}: neither a JSON array of objects nor one object per line`);
			} else if (byte === NEWLINE && depth > 0 && kind === 'lines') {
				throw new DatasetError(`${path}: an object that does not end on its line`);
			}
		}
		if (start >= 0) {
			kept.push(Buffer.from(chunk.subarray(start)));
			keptBytes += chunk.length - start;
			if (keptBytes > MAX_RECORD_BYTES) throw new DatasetError(`${path}: a record over ${MAX_RECORD_BYTES} bytes`);
		}
	}
	if (depth > 0 || kind === 'array') throw new DatasetError(`${path}: the file ends inside the data`);
}

function toSample(text: string, index: number): Sample {
	let record: unknown;
	try {
		record = JSON.parse(text);
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
