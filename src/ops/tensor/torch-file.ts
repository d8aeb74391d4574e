import {crc32, joinedCrc} from './crc.ts';
import {pickle, type Storage, type Tree} from './pickle.ts';
import {descriptor, directory, localHeader, planZip, type ZipPlan} from './zip.ts';

/** A torch file before its data is known: where everything lies, how large it will be, and which data it wants. */
export type TorchPlan = {
	readonly zip: ZipPlan;
	readonly pickle: Buffer;
	/** Storage n is entry `data/n`. */
	readonly storages: readonly Storage[];
	readonly bytes: number;
};

const VERSION = Buffer.from('3\n');

/** `root` is the name inside the archive: torch takes the file's name up to its last dot. */
export function planTorchFile(root: string, tree: Tree): TorchPlan {
	const {bytes: text, storages} = pickle(tree);
	const data = storages.map(({bytes}, at) => ({name: `${root}/data/${at}`, bytes}));
	// torch 1.13 writes the storages in the order of their names as text: 0, 1, 10, 11, 2.
	data.sort((a, b) => (a.name < b.name ? -1 : 1));
	const items = [
		{name: `${root}/data.pkl`, bytes: text.length},
		...data,
		{name: `${root}/version`, bytes: VERSION.length},
	];
	const zip = planZip(items.map(({name, bytes}) => ({name, bytes})));
	return {zip, pickle: text, storages, bytes: zip.bytes};
}

/** Size of the finished file, from shapes alone. */
export const expectedBytes = (root: string, tree: Tree): number => planTorchFile(root, tree).bytes;

/** Small enough to stay in the processor's cache between its sum and its write; larger writes are slower, too. */
const PIECE_BYTES = 512 * 1024;

/**
 * The file in pieces to write one after the other, each summed just before it is given out: one pass over the data for all
 * sums. Data is not copied. Gives back the CRC-32 of the whole file. `data[n]` is the raw bytes of storage n;
 * one that was summed before is not summed again.
 */
export function* torchPieces(
	plan: TorchPlan,
	data: readonly Buffer[],
	knownSum: (data: Buffer) => number | null = () => null,
): Generator<Buffer, number> {
	const sums: {crc: number; bytes: number}[] = [];
	const small = (bytes: Buffer): Buffer => {
		sums.push({crc: crc32(bytes), bytes: bytes.length});
		return bytes;
	};
	const crcs: number[] = [];
	for (const item of plan.zip.items) {
		const content = contentOf(item.name, plan, data);
		if (content.length !== item.bytes)
			throw new Error(`${item.name}: ${content.length} bytes where ${item.bytes} belong`);
		yield small(localHeader(item));
		const known = knownSum(content);
		let crc = known ?? 0;
		if (known !== null) yield content;
		for (let at = 0; known === null && at < content.length; at += PIECE_BYTES) {
			const piece = content.subarray(at, at + PIECE_BYTES);
			crc = crc32(piece, crc);
			yield piece;
		}
		sums.push({crc, bytes: content.length});
		crcs.push(crc);
		yield small(descriptor(item, crc));
	}
	yield small(directory(plan.zip, crcs));
	return joinedCrc(sums);
}

/** All pieces at once. */
export const torchFile = (plan: TorchPlan, data: readonly Buffer[]): Buffer[] => [...torchPieces(plan, data)];

/** Data of an entry, by its name. */
export function contentOf(name: string, plan: TorchPlan, data: readonly Buffer[]): Buffer {
	if (name.endsWith('/data.pkl')) return plan.pickle;
	if (name.endsWith('/version')) return VERSION;
	return data[Number(name.slice(name.lastIndexOf('/') + 1))] ?? Buffer.alloc(0);
}
