import {DamagedFile, UnsupportedFile} from './damage.ts';
import {type Dtype, ITEM_BYTES} from './dtype.ts';
import {strides} from './pickle.ts';
import {readSafetensors} from './safetensors.ts';
import {partOf, type Source, windowed} from './source.ts';
import {readTorchFile} from './torch-reader.ts';
import {entrySource, type PlacedEntry} from './zip-reader.ts';

/** A run of data in a file: one storage, which one or more tensors look into. */
export type DataRange = {
	readonly name: string;
	readonly bytes: number;
	/** Where it starts in the file; null when it is packed. */
	readonly offset: number | null;
	/** What its bytes must sum up to; null where the file does not say. */
	readonly crc: number | null;
	open(): Source;
};

/** A tensor by its place in the tree. Offset and strides in elements of its range. */
export type PlacedTensor = {
	readonly name: string;
	readonly dtype: Dtype;
	readonly shape: readonly number[];
	readonly stride: readonly number[];
	readonly offset: number;
	readonly range: DataRange;
};

/** A tensor file with its structure checked and no data read. */
export type Container = {
	readonly format: 'torch' | 'safetensors';
	readonly ranges: readonly DataRange[];
	readonly tensors: readonly PlacedTensor[];
	/** Whether a changed bit in the data can be told from the file alone. */
	readonly checksums: boolean;
	/** What is out of the ordinary and no damage. */
	readonly notes: readonly string[];
};

const LEGACY_PICKLE = Buffer.from('80028a0a6cfc9c46f9206aa850192e', 'hex');

/**
 * Opens a tensor file by its first bytes; `name` only tells safetensors, which has no mark of its own. Throws
 * UnsupportedFile for formats that are not read here, DamagedFile for everything that is not whole.
 */
export function openContainer(file: Source, name: string): Container {
	if (file.size === 0) throw new DamagedFile('0 bytes', 'empty');
	const source = windowed(file);
	const head = source.read(0, Math.min(512, source.size));
	if (head[0] === 0x1f && head[1] === 0x8b) throw new UnsupportedFile('gzip');
	if (name.endsWith('.safetensors')) return openSafetensors(source);
	if (head.subarray(0, LEGACY_PICKLE.length).equals(LEGACY_PICKLE)) throw new UnsupportedFile('legacy pickle');
	if (head.length === 512 && head.toString('latin1', 257, 262) === 'ustar') throw new UnsupportedFile('legacy tar');
	if (head.length < 4 || head.readUInt32LE(0) !== 0x04034b50)
		throw new DamagedFile(
			head.every(byte => byte === 0) ? 'starts with zeros' : 'no zip signature',
			'not a tensor file',
		);
	return openTorch(source);
}

function openTorch(source: Source): Container {
	const {zip, inside, tensors: stored, protocol} = readTorchFile(source);
	const notes: string[] = [];
	if (!zip.asWritten) notes.push('metadata is not as torch.save writes it');
	if (protocol > 2) notes.push(`pickle protocol ${protocol}: weights_only refuses it`);
	if (zip.entries.some(({method}) => method !== 0)) notes.push('deflated: mmap cannot read it');
	const ranges = new Map([...inside].map(([name, entry]) => [name, rangeOf(source, entry, zip.checksums)]));
	const locations = new Set<string>();
	const tensors = stored.map(([name, {dtype, shape, stride, offset, key, location}]) => {
		const range = ranges.get(`data/${key}`);
		if (!range) throw new DamagedFile(`storage data/${key} is missing`, 'storage');
		locations.add(location);
		return {name, dtype, shape, stride, offset, range};
	});
	for (const location of locations)
		if (location !== 'cpu') notes.push(`saved from ${location.slice(0, 20)}: elsewhere it needs map_location`);
	return {format: 'torch', ranges: [...ranges.values()], tensors, checksums: zip.checksums, notes};
}

function rangeOf(source: Source, entry: PlacedEntry, checksums: boolean): DataRange {
	return {
		name: entry.name,
		bytes: entry.bytes,
		offset: entry.method === 0 ? entry.dataOffset : null,
		crc: checksums ? entry.crc : null,
		open: () => entrySource(source, entry),
	};
}

function openSafetensors(source: Source): Container {
	const {tensors} = readSafetensors(source);
	const placed = tensors.map(({name, dtype, shape, from, bytes}) => ({
		name,
		dtype,
		shape,
		stride: strides(shape),
		offset: 0,
		range: {name, bytes, offset: from, crc: null, open: () => partOf(source, from, bytes)},
	}));
	return {format: 'safetensors', ranges: placed.map(each => each.range), tensors: placed, checksums: false, notes: []};
}

/** The element of `tensor` that lies at `element` of its range, by its place in row order; null when it has none there. */
export function placeIn(tensor: PlacedTensor, element: number): readonly number[] | null {
	let rest = element - tensor.offset;
	if (rest < 0 || tensor.shape.includes(0)) return null;
	const place = tensor.shape.map(() => 0);
	const byStride = [...tensor.stride.keys()].sort(
		(one, other) => (tensor.stride[other] ?? 0) - (tensor.stride[one] ?? 0),
	);
	for (const dimension of byStride) {
		const step = tensor.stride[dimension] ?? 0;
		if (step === 0) continue;
		place[dimension] = Math.min(Math.floor(rest / step), (tensor.shape[dimension] ?? 1) - 1);
		rest -= (place[dimension] ?? 0) * step;
	}
	return rest === 0 ? place : null;
}

/** Bytes from one element of a tensor on, within its range. */
export const byteOf = (tensor: PlacedTensor, element: number): number =>
	(tensor.offset + element) * ITEM_BYTES[tensor.dtype];
