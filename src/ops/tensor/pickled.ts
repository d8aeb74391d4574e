import {type Dtype, elements, ITEM_BYTES, STORAGES} from './pickle.ts';
import {DamagedFile} from './zip-reader.ts';

/** Values of a pickle as inert data: a name stays a name. Cycles are possible; walk by identity. */
export type StoredTensor = {
	readonly kind: 'stored tensor';
	readonly dtype: Dtype;
	/** Entry `data/<key>`, and how many elements it has to hold. */
	readonly key: string;
	readonly storageElements: number;
	readonly offset: number;
	readonly shape: readonly number[];
	readonly stride: readonly number[];
};

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
	| {readonly kind: 'storage'; readonly dtype: Dtype; readonly key: string; readonly elements: number};

const REBUILD = 'torch._utils _rebuild_tensor_v2';
const PARAMETER = 'torch._utils _rebuild_parameter';
const ORDERED = 'collections OrderedDict';
const DTYPES = new Map(Object.entries(STORAGES).map(([dtype, name]) => [`torch ${name}`, dtype as Dtype]));

/** ('storage', torch.<T>Storage, key, location, elements); a key is a number, never a path. */
export function storageOf(value: Pickled): Pickled {
	const [word, type, key, location, count, ...rest] = tuple(value);
	const dtype = type !== null && typeof type === 'object' && type.kind === 'global' ? DTYPES.get(type.name) : undefined;
	if (word !== 'storage' || dtype === undefined || typeof key !== 'string' || !/^\d+$/.test(key) || rest.length > 0) {
		throw new DamagedFile('pickle names a storage of an unknown kind');
	}
	if (typeof location !== 'string' || !isCount(count)) throw new DamagedFile('pickle names a storage of no size');
	return {kind: 'storage', dtype, key, elements: count};
}

export function callOf(call: Pickled, argument: Pickled): Pickled {
	const name = call !== null && typeof call === 'object' && call.kind === 'global' ? call.name : '';
	const values = tuple(argument);
	if (name === ORDERED && values.length === 0) return {kind: 'dict', entries: new Map()};
	if (name === PARAMETER && values.length === 3) return tensorOf(values[0] ?? null);
	if (name === REBUILD) return rebuild(values);
	throw new DamagedFile(`pickle calls ${name || 'a value'}, which is refused`);
}

function tensorOf(value: Pickled): StoredTensor {
	if (value === null || typeof value !== 'object' || value.kind !== 'stored tensor')
		throw new DamagedFile('pickle wraps no tensor');
	return value;
}

function rebuild([from, offset, size, stride]: Pickled[]): StoredTensor {
	if (from === null || typeof from !== 'object' || from.kind !== 'storage')
		throw new DamagedFile('tensor without a storage');
	const shape = tuple(size ?? null);
	const steps = tuple(stride ?? null);
	if (!shape.every(isCount) || !steps.every(isCount) || shape.length !== steps.length || !isCount(offset)) {
		throw new DamagedFile('tensor with impossible sizes');
	}
	let last = BigInt(offset);
	for (const [at, count] of shape.entries()) last += BigInt(Math.max(count - 1, 0)) * BigInt(steps[at] ?? 0);
	if (elements(shape) > 0 && last >= BigInt(from.elements)) throw new DamagedFile('tensor reaches beyond its storage');
	return {
		kind: 'stored tensor',
		dtype: from.dtype,
		key: from.key,
		storageElements: from.elements,
		offset,
		shape,
		stride: steps,
	};
}

function tuple(value: Pickled): Pickled[] {
	if (value === null || typeof value !== 'object' || value.kind !== 'tuple')
		throw new DamagedFile('pickle gives no arguments');
	return value.items;
}

const isCount = (value: Pickled | undefined): value is number =>
	typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

export const storageBytes = (tensor: StoredTensor): number => tensor.storageElements * ITEM_BYTES[tensor.dtype];
