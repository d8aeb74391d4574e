import {DamagedFile} from './damage.ts';
import {type Dtype, ITEM_BYTES, STORAGES, TORCH_DTYPES} from './dtype.ts';
import {elements} from './pickle.ts';

/** A tensor as a pickle describes it; the data is elsewhere. Offset and strides in elements. */
export type StoredTensor = {
	readonly kind: 'stored tensor';
	readonly dtype: Dtype;
	/** Entry `data/<key>`, and how many bytes it has to hold. */
	readonly key: string;
	readonly storageBytes: number;
	/** Where it was when it was saved, `cpu` or `cuda:0`. */
	readonly location: string;
	readonly offset: number;
	readonly shape: readonly number[];
	readonly stride: readonly number[];
};

/** Values of a pickle as inert data: a name stays a name. Cycles are possible; walk by identity. */
export type Pickled =
	| StoredTensor
	| string
	| number
	| boolean
	| null
	| {readonly kind: 'tuple'; readonly items: Pickled[]}
	| {readonly kind: 'list'; readonly items: Pickled[]}
	| {readonly kind: 'dict'; readonly entries: Map<Pickled, Pickled>}
	| {readonly kind: 'global'; readonly name: string}
	| Storage;

/** `dtype` is null for untyped bytes. */
type Storage = {
	readonly kind: 'storage';
	readonly dtype: Dtype | null;
	readonly key: string;
	readonly location: string;
	readonly bytes: number;
};

const REBUILD = 'torch._utils _rebuild_tensor_v2';
const REBUILD_WITH_DTYPE = 'torch._utils _rebuild_tensor_v3';
const PARAMETER = 'torch._utils _rebuild_parameter';
const ORDERED = 'collections OrderedDict';
const STORAGE_DTYPES: ReadonlyMap<string, Dtype | null> = new Map<string, Dtype | null>([
	...Object.entries(STORAGES).map(([dtype, name]) => [`torch ${name}`, dtype as Dtype] as const),
	['torch UntypedStorage', null],
	['torch.storage UntypedStorage', null],
]);
const ALLOWED: ReadonlySet<string> = new Set([
	REBUILD,
	REBUILD_WITH_DTYPE,
	PARAMETER,
	ORDERED,
	...STORAGE_DTYPES.keys(),
	...[...TORCH_DTYPES.keys()].map(name => `torch ${name}`),
]);

const refuse = (words: string): DamagedFile => new DamagedFile(words, 'pickle');

/** A name, if it is one of the few that tensors need; a prefix proves nothing. Never looked up, never called. */
export function globalOf(module: string, name: string): Pickled {
	const full = `${module} ${name}`;
	if (!ALLOWED.has(full)) throw refuse(`pickle names ${full.slice(0, 80)}, which is refused`);
	return {kind: 'global', name: full};
}

/** ('storage', torch.<T>Storage, key, location, elements); a key is a number, never a path. */
export function storageOf(value: Pickled): Pickled {
	const [word, type, key, location, count, ...rest] = tuple(value);
	const dtype = STORAGE_DTYPES.get(nameOf(type));
	if (word !== 'storage' || dtype === undefined || typeof key !== 'string' || !/^\d{1,15}$/.test(key) || rest.length) {
		throw refuse('pickle names a storage of an unknown kind');
	}
	if (typeof location !== 'string' || !isCount(count)) throw refuse('pickle names a storage of no size');
	const bytes = count * (dtype === null ? 1 : ITEM_BYTES[dtype]);
	if (!Number.isSafeInteger(bytes)) throw refuse('pickle names a storage of no size');
	return {kind: 'storage', dtype, key, location, bytes};
}

/** What one of the four known calls comes to, as data. */
export function callOf(call: Pickled, argument: Pickled): Pickled {
	const name = nameOf(call);
	const values = tuple(argument);
	if (name === ORDERED && values.length === 0) return {kind: 'dict', entries: new Map()};
	if (name === PARAMETER && values.length === 3) return tensorOf(values[0]);
	if (name === REBUILD && values.length >= 6) return rebuild(values, null);
	if (name === REBUILD_WITH_DTYPE && values.length >= 7) return rebuild(values, dtypeOf(values[6]));
	throw refuse(`pickle calls ${name || 'a value'}, which is refused`);
}

function dtypeOf(value: Pickled | undefined): Dtype {
	const dtype = TORCH_DTYPES.get(nameOf(value).replace(/^torch /, ''));
	if (!dtype) throw refuse('tensor of an unknown type');
	return dtype;
}

function tensorOf(value: Pickled | undefined): StoredTensor {
	if (value === undefined || value === null || typeof value !== 'object' || value.kind !== 'stored tensor')
		throw refuse('pickle wraps no tensor');
	return value;
}

function rebuild([from, offset, size, steps]: Pickled[], asked: Dtype | null): StoredTensor {
	if (from === undefined || from === null || typeof from !== 'object' || from.kind !== 'storage')
		throw refuse('tensor without a storage');
	const dtype = asked ?? from.dtype;
	if (dtype === null) throw refuse('tensor of an unknown type');
	const shape = tuple(size);
	const stride = tuple(steps);
	if (!shape.every(isCount) || !stride.every(isCount) || shape.length !== stride.length || !isCount(offset)) {
		throw refuse('tensor with impossible sizes');
	}
	// Beyond 2^53 a sum is rounded, but never to below that, and no storage holds as much.
	let last = offset;
	for (let at = 0; at < shape.length; at++) last += Math.max((shape[at] ?? 0) - 1, 0) * (stride[at] ?? 0);
	const held = Math.floor(from.bytes / ITEM_BYTES[dtype]);
	const empty = shape.includes(0);
	if (!empty && last >= held) throw refuse('tensor reaches beyond its storage');
	// Strides of 0 let a small storage claim any number of elements.
	if (!empty && !Number.isSafeInteger(elements(shape))) throw refuse('tensor with impossible sizes');
	const {key, location, bytes} = from;
	return {kind: 'stored tensor', dtype, key, storageBytes: bytes, location, offset, shape, stride};
}

function tuple(value: Pickled | undefined): Pickled[] {
	if (value === undefined || value === null || typeof value !== 'object' || value.kind !== 'tuple')
		throw refuse('pickle gives no arguments');
	return value.items;
}

const nameOf = (value: Pickled | undefined): string =>
	value !== undefined && value !== null && typeof value === 'object' && value.kind === 'global' ? value.name : '';

const isCount = (value: Pickled | undefined): value is number =>
	typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
