import {ITEM_BYTES, STORAGES, type StorageDtype} from './dtype.ts';

/** In row order with nothing between the elements and a storage of its own, unless it is a view. */
export type Tensor = {
	readonly kind: 'tensor';
	readonly dtype: StorageDtype;
	readonly shape: readonly number[];
	readonly view?: View;
};

/** A look into a storage that others look into, too: those that name the same one. Sizes, offset and strides in elements. */
export type View = {
	readonly storage: string;
	readonly elements: number;
	readonly offset: number;
	readonly stride: readonly number[];
};

/** `tensor` is the first that looks into it. */
export type Storage = {readonly tensor: Tensor; readonly bytes: number};

export type Tree =
	| Tensor
	| {readonly kind: 'list'; readonly items: readonly Tree[]}
	| {readonly kind: 'dict'; readonly entries: readonly (readonly [key: string, value: Tree])[]};

export const tensor = (dtype: StorageDtype, shape: readonly number[]): Tensor => ({kind: 'tensor', dtype, shape});

export const elements = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

export const tensorBytes = ({dtype, shape}: Tensor): number => elements(shape) * ITEM_BYTES[dtype];

const heldElements = ({shape, view}: Tensor): number => view?.elements ?? elements(shape);

/**
 * The pickle that torch.save makes of a plain tree of tensors, and their storages in order: storage n is entry `data/n`.
 * Protocol 2, opcodes and memo numbers in CPython's order, so that the bytes equal torch's own. Only dicts with text keys,
 * lists and tensors: what every reader loads, also with weights_only.
 */
export function pickle(tree: Tree): {bytes: Buffer; storages: Storage[]} {
	const writer = new PickleWriter();
	writer.save(tree);
	return {bytes: writer.end(), storages: writer.storages};
}

class PickleWriter {
	readonly storages: Storage[] = [];
	private readonly parts: Buffer[] = [Buffer.from([0x80, 2])];
	private readonly memo = new Map<string, number>();
	private memoSize = 0;

	end(): Buffer {
		this.text('.');
		return Buffer.concat(this.parts);
	}

	save(tree: Tree): void {
		if (tree.kind === 'tensor') {
			this.tensor(tree);
			return;
		}
		this.text(tree.kind === 'list' ? ']' : '}');
		this.put();
		if (tree.kind === 'list') {
			this.batches(tree.items, 'a', 'e', item => this.save(item));
		} else {
			this.batches(tree.entries, 's', 'u', ([key, value]) => {
				this.string(key);
				this.save(value);
			});
		}
	}

	/** CPython batches by 1000; a batch of one has an opcode of its own. */
	private batches<T>(all: readonly T[], single: string, many: string, each: (item: T) => void): void {
		for (let from = 0; from < all.length; from += 1000) {
			const batch = all.slice(from, from + 1000);
			if (batch.length > 1) this.text('(');
			for (const item of batch) each(item);
			this.text(batch.length > 1 ? many : single);
		}
	}

	private tensor(made: Tensor): void {
		this.global('torch._utils', '_rebuild_tensor_v2');
		this.text('((');
		this.shared('storage');
		this.global('torch', STORAGES[made.dtype]);
		this.storage(made);
		this.shared('cpu');
		this.integer(heldElements(made));
		this.text('t');
		this.put();
		this.text('Q');
		this.integer(made.view?.offset ?? 0);
		this.tuple(made.shape);
		this.tuple(made.view?.stride ?? strides(made.shape));
		this.text('\x89');
		this.global('collections', 'OrderedDict');
		this.text(')R');
		this.put();
		this.text('t');
		this.put();
		this.text('R');
		this.put();
	}

	/** The key of a tensor's storage. Of a storage that is known the key is one and the same text, so it is recalled. */
	private storage(made: Tensor): void {
		const name = made.view && `storage ${made.view.storage}`;
		if (name !== undefined && this.known(name)) return;
		this.string(String(this.storages.length));
		if (name !== undefined) this.memo.set(name, this.memoSize - 1);
		this.storages.push({tensor: made, bytes: heldElements(made) * ITEM_BYTES[made.dtype]});
	}

	private tuple(values: readonly number[]): void {
		if (values.length === 0) {
			this.text(')');
			return;
		}
		if (values.length > 3) this.text('(');
		for (const value of values) this.integer(value);
		this.text(values.length > 3 ? 't' : '\x85\x86\x87'.charAt(values.length - 1));
		this.put();
	}

	private integer(value: number): void {
		if (value < 0x100) this.raw([0x4b, value]);
		else if (value < 0x10000) this.raw([0x4d, value & 0xff, value >> 8]);
		else if (value < 0x80000000) this.raw([0x4a, ...little(value, 4)]);
		else {
			const bytes: number[] = [];
			for (let rest = BigInt(value); rest > 0n; rest >>= 8n) bytes.push(Number(rest & 0xffn));
			if ((bytes.at(-1) ?? 0) >= 0x80) bytes.push(0);
			this.raw([0x8a, bytes.length, ...bytes]);
		}
	}

	private string(value: string): void {
		const bytes = Buffer.from(value);
		this.raw([0x58, ...little(bytes.length, 4)]);
		this.parts.push(bytes);
		this.put();
	}

	private shared(value: string): void {
		if (!this.known(value)) {
			this.string(value);
			this.memo.set(value, this.memoSize - 1);
		}
	}

	private global(module: string, name: string): void {
		const key = `${module}\n${name}\n`;
		if (this.known(key)) return;
		this.text(`c${key}`);
		this.put();
		this.memo.set(key, this.memoSize - 1);
	}

	private known(key: string): boolean {
		const at = this.memo.get(key);
		if (at === undefined) return false;
		this.raw(at < 0x100 ? [0x68, at] : [0x6a, ...little(at, 4)]);
		return true;
	}

	private put(): void {
		const at = this.memoSize++;
		this.raw(at < 0x100 ? [0x71, at] : [0x72, ...little(at, 4)]);
	}

	private text(value: string): void {
		this.parts.push(Buffer.from(value, 'latin1'));
	}

	private raw(bytes: readonly number[]): void {
		this.parts.push(Buffer.from(bytes));
	}
}

const little = (value: number, bytes: number): number[] =>
	Array.from({length: bytes}, (_, at) => Math.floor(value / 2 ** (8 * at)) & 0xff);

/** Contiguous strides in elements, as torch gives them (a size of 0 counts as 1). */
export function strides(shape: readonly number[]): number[] {
	const result: number[] = new Array<number>(shape.length).fill(1);
	for (let at = shape.length - 2; at >= 0; at--) result[at] = (result[at + 1] ?? 1) * Math.max(shape[at + 1] ?? 1, 1);
	return result;
}
