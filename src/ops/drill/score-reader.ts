import {readFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import type {ExtractionConfig} from '../target.ts';
import type {DatasetRecord} from './records.ts';
import {hiddenStates, LAYERS} from './states.ts';

/**
 * Reads a finished sample with nothing of the product's own tensor code, so that an error there cannot hide itself: the
 * whole file in memory, its directory, every checksum, shapes from the pickle, every value against what the stand-in
 * model gives for those ids. Returns what is wrong, or null.
 */
export function checkSample(extraction: ExtractionConfig, index: number, record: DatasetRecord): string | null {
	const from = Math.floor(index / extraction.groupSize) * extraction.groupSize;
	const path = `${extraction.output}/rows_${from}-${from + extraction.groupSize}/data_${index}.pt`;
	try {
		const entries = readArchive(readFileSync(path));
		const data = (name: string): Buffer => entries.get(`data_${index}/${name}`) ?? fail(`no ${name}`);
		const tokens = record.input_ids.length;
		const wanted = [
			`${tokens}`,
			...Array.from({length: LAYERS}, () => `${tokens}x${extraction.hiddenSize}`),
			`${tokens}`,
		];
		const shapes = readShapes(data('data.pkl'));
		if (shapes.join(' ') !== wanted.join(' ')) fail(`shapes ${shapes.join(' ')} where ${wanted.join(' ')} belong`);
		if (!data('data/0').equals(wide(record.input_ids))) fail('input_ids differ from the dataset');
		for (let layer = 0; layer < LAYERS; layer++) {
			const right = hiddenStates(record.input_ids, layer, extraction.hiddenSize);
			if (!data(`data/${layer + 1}`).equals(right)) fail(`states of layer ${layer} are not those of its ids`);
		}
		if (!data(`data/${LAYERS + 1}`).equals(wide(record.loss_mask))) fail('loss_mask differs from the dataset');
		return null;
	} catch (error) {
		return error instanceof Error ? error.message : String(error);
	}
}

function fail(reason: string): never {
	throw new Error(reason);
}

function wide(values: readonly number[]): Buffer {
	const bytes = Buffer.alloc(values.length * 8);
	for (const [at, value] of values.entries()) bytes.writeBigInt64LE(BigInt(value), at * 8);
	return bytes;
}

/** Stored entries by name, each with its checksum computed. */
function readArchive(file: Buffer): Map<string, Buffer> {
	const end = file.length - 22;
	if (end < 0 || file.readUInt32LE(end) !== 0x06054b50) fail('no end record');
	const entries = new Map<string, Buffer>();
	let at = file.readUInt32LE(end + 16);
	for (let count = file.readUInt16LE(end + 10); count > 0; count--) {
		if (file.readUInt32LE(at) !== 0x02014b50) fail('damaged directory');
		if (file.readUInt16LE(at + 10) !== 0) fail('compressed entry');
		const [checksum, size] = [file.readUInt32LE(at + 16), file.readUInt32LE(at + 24)];
		const [nameLength, extraLength] = [file.readUInt16LE(at + 28), file.readUInt16LE(at + 30)];
		const name = file.toString('utf8', at + 46, at + 46 + nameLength);
		const local = file.readUInt32LE(at + 42);
		if (file.readUInt32LE(local) !== 0x04034b50) fail(`no header for ${name}`);
		const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
		const data = file.subarray(start, start + size);
		if (data.length !== size || crc32(data) !== checksum) fail(`wrong checksum of ${name}`);
		entries.set(name, data);
		at += 46 + nameLength + extraLength + file.readUInt16LE(at + 32);
	}
	return entries;
}

/** Sizes of the tensors in order, `40` or `40x64`: the tuple after the storage offset in each rebuild call. */
function readShapes(text: Buffer): string[] {
	const shapes: string[] = [];
	const pattern = /QK\x00((?:K[\s\S]|M[\s\S]{2}){1,2})[\x85\x86]/g;
	for (const [, numbers = ''] of text.toString('latin1').matchAll(pattern)) {
		const values: number[] = [];
		const bytes = Buffer.from(numbers, 'latin1');
		for (let at = 0; at < bytes.length; ) {
			const short = bytes[at] === 0x4b;
			values.push(short ? (bytes[at + 1] ?? 0) : bytes.readUInt16LE(at + 1));
			at += short ? 2 : 3;
		}
		shapes.push(values.join('x'));
	}
	return shapes;
}
