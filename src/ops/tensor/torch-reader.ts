import {closeSync, openSync} from 'node:fs';
import {type Dtype, elements, ITEM_BYTES, strides} from './pickle.ts';
import {type Pickled, type StoredTensor, storageBytes} from './pickled.ts';
import {unpickle} from './unpickle.ts';
import {DamagedFile, readEntry, readZip, type ZipContents} from './zip-reader.ts';

export type TorchContents = {readonly zip: ZipContents; readonly root: string; readonly tree: Pickled};

export type TensorData = {readonly dtype: Dtype; readonly shape: readonly number[]; readonly data: Buffer};

/**
 * Everything of a torch file but its data: metadata compared byte for byte, the pickle read without running anything, each
 * storage there and of the size the pickle says. Throws DamagedFile.
 */
export function readTorchFile(fd: number): TorchContents {
	const zip = readZip(fd);
	const root = zip.plan.items[0]?.name.split('/')[0] ?? '';
	const sizes = new Map(zip.plan.items.map(item => [item.name, item.bytes]));
	if (!sizes.has(`${root}/version`)) throw new DamagedFile('no version entry: not a torch file');
	const tree = unpickle(readEntry(fd, zip, `${root}/data.pkl`, checked(zip)));
	for (const [, tensor] of tensorsOf(tree)) {
		if (sizes.get(`${root}/data/${tensor.key}`) !== storageBytes(tensor)) {
			throw new DamagedFile(`storage ${tensor.key} is not of the size its tensor says`);
		}
	}
	return {zip, root, tree};
}

/** torch can be told to write no checksums: then all of them are 0 and say nothing. */
const checked = (zip: ZipContents): boolean => zip.crcs.some(crc => crc !== 0);

/** Every tensor with its place in the tree, `hidden_states[0]`. Walks by identity: shared parts and cycles are met once. */
export function tensorsOf(tree: Pickled): [path: string, tensor: StoredTensor][] {
	const found: [string, StoredTensor][] = [];
	const seen = new Set<Pickled>();
	const todo: [string, Pickled][] = [['', tree]];
	for (let next = todo.pop(); next; next = todo.pop()) {
		const [path, value] = next;
		if (value === null || typeof value !== 'object') continue;
		if (value.kind === 'stored tensor') found.push([path, value]);
		else if (seen.has(value)) continue;
		else if (value.kind === 'list' || value.kind === 'tuple') {
			seen.add(value);
			for (const [at, item] of [...value.items.entries()].reverse()) todo.push([`${path}[${at}]`, item]);
		} else if (value.kind === 'dict') {
			seen.add(value);
			for (const [key, item] of [...value.entries].reverse()) todo.push([path ? `${path}.${key}` : String(key), item]);
		}
	}
	return found;
}

/** A tensor's elements in row order, whatever its strides. Checks the storage's checksum. */
export function readTensor(fd: number, {zip, root}: TorchContents, tensor: StoredTensor): TensorData {
	const {dtype, shape, stride, offset, key} = tensor;
	const storage = readEntry(fd, zip, `${root}/data/${key}`, checked(zip));
	const size = ITEM_BYTES[dtype];
	const count = elements(shape);
	if (strides(shape).every((step, at) => step === stride[at] || (shape[at] ?? 0) <= 1)) {
		return {dtype, shape, data: storage.subarray(offset * size, (offset + count) * size)};
	}
	const data = Buffer.alloc(count * size);
	const place = shape.map(() => 0);
	for (let at = 0; at < count; at++) {
		const from = place.reduce((sum, one, dimension) => sum + one * (stride[dimension] ?? 0), offset) * size;
		storage.copy(data, at * size, from, from + size);
		for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
			place[dimension] = (place[dimension] ?? 0) + 1;
			if ((place[dimension] ?? 0) < (shape[dimension] ?? 0)) break;
			place[dimension] = 0;
		}
	}
	return {dtype, shape, data};
}

/** A file that holds one tensor and nothing else, as the dump patch writes. Throws DamagedFile or the read's own error. */
export function readBareTensor(path: string): TensorData {
	const fd = openSync(path, 'r');
	try {
		const file = readTorchFile(fd);
		const {tree} = file;
		if (tree === null || typeof tree !== 'object' || tree.kind !== 'stored tensor')
			throw new DamagedFile('not a bare tensor');
		return readTensor(fd, file, tree);
	} finally {
		closeSync(fd);
	}
}
