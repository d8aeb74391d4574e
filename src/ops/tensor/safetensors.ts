import {crc32, joinedCrc} from './crc.ts';
import {DamagedFile} from './damage.ts';
import {type Dtype, ITEM_BYTES} from './dtype.ts';
import type {Source} from './source.ts';
import {type Json, parseStrictJson} from './strict-json.ts';

/** A tensor of a safetensors file, little-endian, in row order. Offsets in bytes from the start of the file. */
export type SafeTensor = {
	readonly name: string;
	readonly dtype: Dtype;
	readonly shape: readonly number[];
	readonly from: number;
	readonly bytes: number;
};

export type Safetensors = {readonly tensors: readonly SafeTensor[]; readonly metadata: ReadonlyMap<string, string>};

const MAX_HEADER_BYTES = 100_000_000;

/**
 * What a safetensors file holds, in the order of its data, by the rules of the format's own validate(): no hole, no overlap,
 * every byte covered, each size what shape and type say. The format has no checksums. Throws DamagedFile.
 */
export function readSafetensors(source: Source): Safetensors {
	if (source.size < 8) throw new DamagedFile('no room for a header length', 'cut off');
	const length = source.read(0, 8).readBigUInt64LE(0);
	if (length > BigInt(MAX_HEADER_BYTES)) throw new DamagedFile(`header of ${length} bytes is too large`, 'header');
	if (length < 2n) throw new DamagedFile(`header of ${length} bytes is too small`, 'header');
	const start = 8 + Number(length);
	if (start > source.size) throw new DamagedFile('the header is cut off', 'cut off');
	const text = source.read(8, Number(length));
	if (text[0] !== 0x7b) throw new DamagedFile('header is no JSON object', 'header');
	const header = parseStrictJson(utf8(text));
	if (!(header instanceof Map)) throw new DamagedFile('header is no JSON object', 'header');
	const tensors: SafeTensor[] = [];
	let metadata: ReadonlyMap<string, string> = new Map();
	for (const [name, value] of header as ReadonlyMap<string, Json>) {
		if (name === '__metadata__') metadata = metadataOf(value);
		else tensors.push(tensorOf(name, value, start));
	}
	tensors.sort((one, other) => one.from - other.from || one.bytes - other.bytes);
	checkCover(tensors, start, source.size);
	return {tensors, metadata};
}

function utf8(text: Buffer): string {
	try {
		return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(text);
	} catch {
		throw new DamagedFile('header is not UTF-8', 'header');
	}
}

function checkCover(tensors: readonly SafeTensor[], start: number, size: number): void {
	let cursor = start;
	for (const {name, from, bytes} of tensors) {
		if (from !== cursor) throw new DamagedFile(`${name} does not start where the last tensor ends`, 'header');
		cursor += bytes;
	}
	if (cursor > size) throw new DamagedFile(`ends ${cursor - size} bytes early`, 'cut off');
	if (cursor < size) throw new DamagedFile(`${size - cursor} bytes after the last tensor`, 'trailing bytes');
}

function tensorOf(name: string, value: Json, start: number): SafeTensor {
	const wrong = (why: string): DamagedFile => new DamagedFile(`${name.slice(0, 80)}: ${why}`, 'header');
	if (!(value instanceof Map) || value.size !== 3) throw wrong('no dtype, shape and data_offsets');
	const dtype = Object.keys(ITEM_BYTES).find(each => each === value.get('dtype')) as Dtype | undefined;
	if (!dtype) throw wrong('unknown dtype');
	const shape: unknown = value.get('shape');
	const offsets: unknown = value.get('data_offsets');
	if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2) throw wrong('sizes that are no whole numbers');
	const [from = 0, to = 0] = offsets;
	const needed = shape.reduce((product, size) => product * BigInt(size), BigInt(ITEM_BYTES[dtype]));
	if (from > to || BigInt(to - from) !== needed) throw wrong(`${to - from} bytes where its shape needs ${needed}`);
	return {name, dtype, shape, from: start + from, bytes: to - from};
}

function metadataOf(value: Json): ReadonlyMap<string, string> {
	if (!(value instanceof Map) || ![...value.values()].every(each => typeof each === 'string'))
		throw new DamagedFile('metadata is not text to text', 'header');
	return value;
}

const isCounts = (value: unknown): value is readonly number[] =>
	Array.isArray(value) && value.every(each => Number.isSafeInteger(each) && each >= 0 && !Object.is(each, -0));

export type TensorShape = {readonly name: string; readonly dtype: Dtype; readonly shape: readonly number[]};

export type SafetensorsPlan = {
	/** Header length and header, padded so that the data starts at a multiple of 8. */
	readonly header: Buffer;
	/** In the order of the data: largest element type first, then by name, as the format's own writer does. */
	readonly tensors: readonly SafeTensor[];
	/** Size of the whole file. */
	readonly bytes: number;
};

/** A file before its data is known: write `header`, then the data of `tensors` in their order. Names must differ. */
export function planSafetensors(
	shapes: readonly TensorShape[],
	metadata: Readonly<Record<string, string>> = {},
): SafetensorsPlan {
	const order = [...shapes].sort((one, other) => {
		const bySize = ITEM_BYTES[other.dtype] - ITEM_BYTES[one.dtype];
		return bySize !== 0 ? bySize : one.name < other.name ? -1 : 1;
	});
	const names = new Set(shapes.map(({name}) => name));
	if (names.size !== shapes.length || names.has('__metadata__')) throw new Error('tensors need names of their own');
	let cursor = 0;
	const placed = order.map(({name, dtype, shape}) => {
		const bytes = shape.reduce((product, size) => product * size, ITEM_BYTES[dtype]);
		cursor += bytes;
		return {name, dtype, shape, from: cursor - bytes, bytes};
	});
	// Written by hand: an object would put a tensor named "1" first, and lose one named "__proto__".
	const parts = placed.map(
		({name, dtype, shape, from, bytes}) =>
			`${JSON.stringify(name)}:${JSON.stringify({dtype, shape, data_offsets: [from, from + bytes]})}`,
	);
	if (Object.keys(metadata).length > 0) parts.unshift(`"__metadata__":${JSON.stringify(metadata)}`);
	const text = Buffer.from(`{${parts.join(',')}}`);
	const header = Buffer.alloc(8 + Math.ceil(text.length / 8) * 8, ' ');
	header.writeBigUInt64LE(BigInt(header.length - 8), 0);
	text.copy(header, 8);
	const tensors = placed.map(each => ({...each, from: each.from + header.length}));
	return {header, tensors, bytes: header.length + cursor};
}

/** Small enough to stay in the processor's cache between its sum and its write. */
const PIECE_BYTES = 512 * 1024;

/** The file in pieces to write one after the other; gives back the CRC-32 of all of them. Data is not copied. */
export function* safetensorsPieces(
	{header, tensors}: SafetensorsPlan,
	data: ReadonlyMap<string, Buffer>,
	knownSum: (data: Buffer) => number | null = () => null,
): Generator<Buffer, number> {
	const sums = [{crc: crc32(header), bytes: header.length}];
	yield header;
	for (const {name, bytes} of tensors) {
		const content = data.get(name) ?? Buffer.alloc(0);
		if (content.length !== bytes) throw new Error(`${name}: ${content.length} bytes where ${bytes} belong`);
		const known = knownSum(content);
		let crc = known ?? 0;
		if (known !== null) yield content;
		for (let at = 0; known === null && at < bytes; at += PIECE_BYTES) {
			const piece = content.subarray(at, at + PIECE_BYTES);
			crc = crc32(piece, crc);
			yield piece;
		}
		sums.push({crc, bytes});
	}
	return joinedCrc(sums);
}
