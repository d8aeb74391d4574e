import {crc32} from 'node:zlib';
import {pickle, type Tensor, type Tree, tensorBytes} from './pickle.ts';
import {descriptor, directory, localHeader, planZip, type ZipPlan} from './zip.ts';

/** A torch file before its data is known: where everything lies, how large it will be, and which data it wants. */
export type TorchPlan = {
	readonly zip: ZipPlan;
	readonly pickle: Buffer;
	/** In storage order: tensor n is entry `data/n`. */
	readonly tensors: readonly Tensor[];
	readonly bytes: number;
};

const VERSION = Buffer.from('3\n');

/** `root` is the name inside the archive: torch takes the file's name up to its last dot. */
export function planTorchFile(root: string, tree: Tree): TorchPlan {
	const {bytes: text, tensors} = pickle(tree);
	const data = tensors.map((made, at) => ({name: `${root}/data/${at}`, bytes: tensorBytes(made), at}));
	// torch 1.13 writes the storages in the order of their names as text: 0, 1, 10, 11, 2.
	data.sort((a, b) => (a.name < b.name ? -1 : 1));
	const items = [
		{name: `${root}/data.pkl`, bytes: text.length},
		...data,
		{name: `${root}/version`, bytes: VERSION.length},
	];
	const zip = planZip(items.map(({name, bytes}) => ({name, bytes})));
	return {zip, pickle: text, tensors, bytes: zip.bytes};
}

/** Size of the finished file, from shapes alone. */
export const expectedBytes = (root: string, tree: Tree): number => planTorchFile(root, tree).bytes;

/** The file as pieces to write one after the other; data is not copied. `data[n]` is the raw bytes of tensor n. */
export function torchFile(plan: TorchPlan, data: readonly Buffer[]): Buffer[] {
	const pieces: Buffer[] = [];
	const crcs: number[] = [];
	for (const item of plan.zip.items) {
		const content = contentOf(item.name, plan, data);
		if (content.length !== item.bytes)
			throw new Error(`${item.name}: ${content.length} bytes where ${item.bytes} belong`);
		const crc = crc32(content);
		crcs.push(crc);
		pieces.push(localHeader(item), content, descriptor(item, crc));
	}
	pieces.push(directory(plan.zip, crcs));
	return pieces;
}

function contentOf(name: string, plan: TorchPlan, data: readonly Buffer[]): Buffer {
	if (name.endsWith('/data.pkl')) return plan.pickle;
	if (name.endsWith('/version')) return VERSION;
	return data[Number(name.slice(name.lastIndexOf('/') + 1))] ?? Buffer.alloc(0);
}
