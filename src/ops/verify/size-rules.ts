import {extname} from 'node:path';
import {openContainer} from '../tensor/container.ts';
import {ITEM_BYTES, type StorageDtype} from '../tensor/dtype.ts';
import {pickle, strides, type Tree, type View} from '../tensor/pickle.ts';
import type {Pickled, StoredTensor} from '../tensor/pickled.ts';
import {planSafetensors} from '../tensor/safetensors.ts';
import type {Source} from '../tensor/source.ts';
import {readTorchFile, type TorchContents} from '../tensor/torch-reader.ts';
import {planZip} from '../tensor/zip.ts';
import {readEntry} from '../tensor/zip-reader.ts';
import {sampleIndex} from './names.ts';
import {type SampleShape, sampleShape} from './sample-shape.ts';

/** Size of a file of one layout by its token count and its name. */
type SizeOf = (tokens: number, name: string) => number;

type Rule = {readonly ending: string; readonly perToken: number; readonly overhead: number; readonly sizeOf: SizeOf};

const MOST_RULES = 8;

/**
 * Sizes that files of this tree can have, learnt from files that were looked into: the writers are deterministic, so a
 * sample's size follows from its token count to the byte. A layout that cannot be made again gives no rule, and its files
 * are looked into one by one.
 */
export class SizeRules {
	private readonly rules: Rule[] = [];

	/** The token count that gives this size, null when none does or no rule is known. */
	tokensOf(name: string, bytes: number): number | null {
		if (sampleIndex(name) === null) return null;
		for (const {ending, perToken, overhead, sizeOf} of this.rules) {
			if (ending !== extname(name)) continue;
			const near = Math.round((bytes - overhead) / perToken);
			for (const tokens of [near, near - 1, near + 1]) if (tokens > 0 && sizeOf(tokens, name) === bytes) return tokens;
		}
		return null;
	}

	/** Takes up the layout of a file whose structure was found whole. */
	learn(source: Source, name: string): void {
		if (this.rules.length >= MOST_RULES || sampleIndex(name) === null) return;
		const sample = sampleShape(openContainer(source, name), null);
		if (sample === null || 'verdict' in sample || sample.tokens === 0) return;
		const sizeOf = name.endsWith('.safetensors')
			? safetensorsSize(source, name, sample)
			: torchSize(readTorchFile(source), source, name, sample);
		if (sizeOf?.(sample.tokens, name) !== source.size) return;
		// Far out, where a few digits more in a header do not count.
		const perToken = (sizeOf(3_000_000, name) - sizeOf(2_000_000, name)) / 1_000_000;
		this.rules.push({
			ending: extname(name),
			perToken,
			overhead: source.size - perToken * sample.tokens,
			sizeOf: kept(sizeOf),
		});
	}
}

/** Sizes follow from the count and the length of the name; a tree has few of both. */
function kept(sizeOf: SizeOf): SizeOf {
	const known = new Map<string, number>();
	return (tokens, name) => {
		const key = `${tokens} ${name.length}`;
		const size = known.get(key) ?? sizeOf(tokens, name);
		if (known.size < 100_000) known.set(key, size);
		return size;
	};
}

function torchSize(file: TorchContents, source: Source, name: string, sample: SampleShape): SizeOf | null {
	const {zip, root, inside} = file;
	const text = inside.get('data.pkl');
	if (!zip.asWritten || !text) return null;
	const own = treeAt(file.tree, sample, sample.tokens);
	if (!own || !pickle(own).bytes.equals(readEntry(source, zip, text))) return null;
	const named = root === stem(name);
	return (tokens, other) => {
		const tree = treeAt(file.tree, sample, tokens);
		if (!tree) return 0;
		const {bytes: pickled, storages} = pickle(tree);
		const items = zip.entries.map(entry => {
			const rest = entry.name.slice(root.length);
			const storage = /^\/data\/(\d+)$/.exec(rest);
			const held = storage ? storages[Number(storage[1])] : undefined;
			const bytes = held?.bytes ?? (rest === '/data.pkl' ? pickled.length : entry.bytes);
			return {name: `${named ? stem(other) : root}${rest}`, bytes};
		});
		return planZip(items).bytes;
	};
}

const stem = (name: string): string => name.slice(0, name.lastIndexOf('.'));

/** The tree with another token count; null for what the pickle writer does not make. */
function treeAt(value: Pickled, sample: SampleShape, tokens: number, path = '', depth = 0): Tree | null {
	if (value === null || typeof value !== 'object' || depth > 4) return null;
	if (value.kind === 'stored tensor') {
		const {dtype, shape, stride, offset, storageBytes} = value;
		const axis = sample.tokenAxis.get(path);
		const plain = {kind: 'tensor', dtype: dtype as StorageDtype, shape: shapeAt(shape, axis, tokens)} as const;
		const full = shape.reduce((product, size) => product * size, ITEM_BYTES[dtype]);
		if (offset === 0 && full === storageBytes && strides(shape).every((step, at) => step === stride[at])) return plain;
		const view = axis === undefined ? null : viewAt(value, axis, sample.tokens, tokens);
		return view && {...plain, view};
	}
	if (value.kind === 'list') {
		const items = value.items.map((item, at) => treeAt(item, sample, tokens, `${path}[${at}]`, depth + 1));
		return items.every(item => item !== null) ? {kind: 'list', items} : null;
	}
	if (value.kind !== 'dict') return null;
	const entries: [string, Tree][] = [];
	for (const [key, item] of value.entries) {
		if (typeof key !== 'string') return null;
		const made = treeAt(item, sample, tokens, path ? `${path}.${key}` : key, depth + 1);
		if (!made) return null;
		entries.push([key, made]);
	}
	return {kind: 'dict', entries};
}

/** A view into rows that several tensors share, with another count of rows; null where its storage is not made of rows. */
function viewAt({dtype, key, storageBytes, offset, stride}: StoredTensor, axis: number, own: number, tokens: number) {
	const row = storageBytes / ITEM_BYTES[dtype] / own;
	if (stride[axis] !== row || offset >= row || stride.slice(0, axis).some(step => step !== row * own)) return null;
	const scaled = stride.map((step, at) => (at < axis ? row * tokens : step));
	return {storage: key, elements: row * tokens, offset, stride: scaled} satisfies View;
}

const shapeAt = (shape: readonly number[], axis: number | undefined, tokens: number): readonly number[] =>
	axis === undefined ? shape : shape.with(axis, tokens);

function safetensorsSize(source: Source, name: string, sample: SampleShape): SizeOf {
	const {tensors} = openContainer(source, name);
	const shapesAt = (tokens: number) =>
		tensors.map(({name: own, dtype, shape}) => ({
			name: own,
			dtype,
			shape: shapeAt(shape, sample.tokenAxis.get(own), tokens),
		}));
	return tokens => planSafetensors(shapesAt(tokens)).bytes;
}
