import {closeSync, openSync} from 'node:fs';
import {DamagedFile, UnsupportedFile} from './damage.ts';
import {type Dtype, ITEM_BYTES} from './dtype.ts';
import {elements, strides} from './pickle.ts';
import type {Pickled, StoredTensor} from './pickled.ts';
import {fileSource, type Source, windowed} from './source.ts';
import {MAX_PICKLE_BYTES, unpickled} from './unpickle.ts';
import {type PlacedEntry, readEntry, readZip, type ZipContents} from './zip-reader.ts';

export type TorchContents = {
	readonly zip: ZipContents;
	/** Folder inside the archive that everything lies in; any name. */
	readonly root: string;
	/** By their names in there. */
	readonly inside: ReadonlyMap<string, PlacedEntry>;
	readonly tree: Pickled;
	/** Every tensor with its place in the tree. */
	readonly tensors: readonly (readonly [path: string, tensor: StoredTensor])[];
	readonly protocol: number;
};

export type TensorData = {readonly dtype: Dtype; readonly shape: readonly number[]; readonly data: Buffer};

const MAX_TENSORS = 100_000;

/**
 * Everything of a torch file but its data: frames checked, the pickle read without running anything, each storage there and
 * of the size the pickle says. Entries of torch 1.13 to 2.x in any subset, little-endian only. Throws DamagedFile.
 */
export function readTorchFile(source: Source): TorchContents {
	const zip = readZip(source);
	const root = zip.entries[0]?.name.split('/')[0] ?? '';
	const inside = new Map<string, PlacedEntry>();
	const folder = `${root}/`;
	for (const entry of zip.entries)
		if (entry.name.startsWith(folder)) inside.set(entry.name.slice(folder.length), entry);
	if (inside.size < zip.entries.length || root === '')
		throw new DamagedFile('entries lie in no common folder: not a torch file', 'not a tensor file');
	if (inside.has('constants.pkl')) throw new UnsupportedFile('TorchScript');
	const [text, version, order] = [inside.get('data.pkl'), inside.get('version'), inside.get('byteorder')];
	if (!text) throw new DamagedFile('no data.pkl: not a torch file', 'not a tensor file');
	if (!version) throw new DamagedFile('no version entry: not a torch file', 'not a tensor file');
	checkVersion(readEntry(source, zip, version, 64));
	if (order) checkByteOrder(readEntry(source, zip, order, 64));
	const {value: tree, protocol} = unpickled(readEntry(source, zip, text, MAX_PICKLE_BYTES));
	const tensors = tensorsOf(tree);
	for (const [, {key, storageBytes}] of tensors) {
		const held = storageOf(inside, key).bytes;
		if (held === storageBytes) continue;
		const words = `data/${key} holds ${held} bytes where its tensor needs ${storageBytes}`;
		throw new DamagedFile(words, 'storage', `${root}/data/${key}`);
	}
	return {zip, root, inside, tree, tensors, protocol};
}

/** The entry with the data of a storage. */
function storageOf(inside: TorchContents['inside'], key: string): PlacedEntry {
	const entry = inside.get(`data/${key}`);
	if (!entry) throw new DamagedFile(`storage data/${key} is missing`, 'storage');
	return entry;
}

function checkVersion(text: Buffer): void {
	if (!/^\d{1,3}\n?$/.test(text.toString('latin1'))) throw new DamagedFile('version entry holds no number');
}

function checkByteOrder(text: Buffer): void {
	if (text.toString('latin1') !== 'little') throw new DamagedFile('bytes are not in little-endian order');
}

/** Every tensor with its place in the tree, `hidden_states[0]`. Walks by identity: shared parts and cycles are met once. */
export function tensorsOf(tree: Pickled): [path: string, tensor: StoredTensor][] {
	const found: [string, StoredTensor][] = [];
	const seen = new Set<Pickled>();
	const todo: [string, Pickled][] = [['', tree]];
	for (let next = todo.pop(); next; next = todo.pop()) {
		const [path, value] = next;
		if (value === null || typeof value !== 'object') continue;
		if (value.kind === 'stored tensor') {
			if (found.push([path, value]) > MAX_TENSORS) throw new DamagedFile('pickle holds too many tensors', 'pickle');
		} else if (seen.has(value)) continue;
		else if (value.kind === 'list' || value.kind === 'tuple') {
			seen.add(value);
			for (let at = value.items.length - 1; at >= 0; at--) todo.push([`${path}[${at}]`, value.items[at] ?? null]);
		} else if (value.kind === 'dict') {
			seen.add(value);
			for (const [key, item] of [...value.entries].reverse())
				todo.push([path ? `${path}.${word(key)}` : word(key), item]);
		}
	}
	return found;
}

const word = (key: Pickled): string => (typeof key === 'object' && key !== null ? key.kind : String(key));

/** A tensor's elements in row order, whatever its strides. Checks the storage's checksum. */
export function readTensor(source: Source, {zip, inside}: TorchContents, tensor: StoredTensor): TensorData {
	const {dtype, shape, stride, offset, key} = tensor;
	const storage = readEntry(source, zip, storageOf(inside, key));
	return {dtype, shape, data: inRowOrder(storage, ITEM_BYTES[dtype], offset, shape, stride)};
}

/** Elements of a strided view, copied only where they do not lie in row order already. */
export function inRowOrder(
	storage: Buffer,
	size: number,
	offset: number,
	shape: readonly number[],
	stride: readonly number[],
): Buffer {
	const count = elements(shape);
	if (count === 0) return Buffer.alloc(0);
	if (strides(shape).every((step, at) => step === stride[at] || (shape[at] ?? 0) <= 1)) {
		return storage.subarray(offset * size, (offset + count) * size);
	}
	// Elements that lie side by side are copied as one run: of a view into rows, what it sees of each row.
	let inner = shape.length;
	let run = 1;
	while (inner > 0 && (shape[inner - 1] === 1 || stride[inner - 1] === run)) run *= shape[--inner] ?? 1;
	const data = Buffer.allocUnsafe(count * size);
	const place = shape.slice(0, inner).map(() => 0);
	for (let at = 0; at < count; at += run) {
		const from = place.reduce((sum, one, dimension) => sum + one * (stride[dimension] ?? 0), offset) * size;
		storage.copy(data, at * size, from, from + run * size);
		for (let dimension = inner - 1; dimension >= 0; dimension--) {
			place[dimension] = (place[dimension] ?? 0) + 1;
			if ((place[dimension] ?? 0) < (shape[dimension] ?? 0)) break;
			place[dimension] = 0;
		}
	}
	return data;
}

/** A file that holds one tensor and nothing else, as the dump patch writes. Throws DamagedFile or the read's own error. */
export function readBareTensor(path: string): TensorData {
	const fd = openSync(path, 'r');
	try {
		const source = windowed(fileSource(fd));
		const file = readTorchFile(source);
		const {tree} = file;
		if (tree === null || typeof tree !== 'object' || tree.kind !== 'stored tensor')
			throw new DamagedFile('not a bare tensor');
		return readTensor(source, file, tree);
	} finally {
		closeSync(fd);
	}
}
