import {closeSync, openSync} from 'node:fs';
import {extname} from 'node:path';
import {DamagedFile} from '../tensor/damage.ts';
import {ITEM_BYTES} from '../tensor/dtype.ts';
import type {Pickled, StoredTensor} from '../tensor/pickled.ts';
import {fileSource, windowed} from '../tensor/source.ts';
import {readTorchFile, tensorsOf} from '../tensor/torch-reader.ts';
import {type Form, keysOf, leavesOf, type Part, type StatesPart, tensorOf} from './forms.ts';
import {sampleFiles} from './inventory.ts';
import {type Extraction, LAYOUTS, type Layout} from './layouts.ts';
import {Refusal} from './manifest.ts';
import type {StateName} from './states.ts';

/** So many files are looked into for their form, spread over the tree; all others when they are proved. */
const LOOKED_INTO = 5;
/** Damaged files say nothing; after so many there is nothing to go by. */
const MOST_TRIED = 60;

/**
 * The extraction with the form of the tree that is there: keys, their order, types and endings come from its files, and new
 * ones are made like them. An empty tree gets the layout's own form. Throws Refusal for a tree that mixes forms, naming two
 * files, and for one of a form that cannot be written.
 */
export function mirrorTree(extraction: Extraction): Extraction {
	if (extraction.layout !== 'legacy') return extraction;
	const paths = sampleFiles(extraction.output).map(({path}) => path);
	const [first] = paths;
	if (first === undefined) return extraction;
	const other = paths.find(path => extname(path) !== extname(first));
	if (other) throw new Refusal(`${extraction.output} mixes endings: ${first} and ${other}`);
	const ending = extname(first);
	if (ending !== '.pt' && ending !== '.ckpt') throw new Refusal(`${first} is no file of a legacy tree`);
	const form = commonForm(extraction, paths);
	return {...extraction, mirrored: {...LAYOUTS.legacy, ending, ...(form && {form})} satisfies Layout};
}

function commonForm({output, hiddenSize}: Extraction, paths: readonly string[]): Form | null {
	let known: {path: string; form: Form} | null = null;
	let looked = 0;
	for (const path of spreadOver(paths, MOST_TRIED)) {
		if (looked === LOOKED_INTO) break;
		const form = formIn(path, hiddenSize);
		if (form === null) continue;
		looked++;
		if (known && keysOf(known.form) !== keysOf(form)) throw mixed(output, known, {path, form});
		known ??= {path, form};
	}
	return known?.form ?? null;
}

type Seen = {readonly path: string; readonly form: Form};

export const mixed = (output: string, one: Seen, other: Seen): Refusal =>
	new Refusal(
		`${output} mixes forms: ${one.path} holds ${keysOf(one.form)}, and ${other.path} holds ${keysOf(other.form)}`,
	);

/** First, last, then ever finer between, so that a change of form anywhere is met early. */
function spreadOver(paths: readonly string[], most: number): string[] {
	const found = new Set<string>();
	for (let parts = 1; found.size < Math.min(most, paths.length); parts *= 2)
		for (let at = 0; at <= parts; at++) found.add(paths[Math.round((at * (paths.length - 1)) / parts)] ?? '');
	return [...found].slice(0, most);
}

/** The form of a sample's file; null for one that is damaged or says too little. Throws Refusal for one that cannot be written. */
export function formIn(path: string, hiddenSize: number): Form | null {
	const fd = openSync(path, 'r');
	try {
		return formOf(readTorchFile(windowed(fileSource(fd))).tree, hiddenSize);
	} catch (error) {
		if (error instanceof Unmirrored)
			throw new Refusal(`${path}: ${error.message}: a tree of this form cannot be gone on with`);
		if (error instanceof DamagedFile) return null;
		throw error;
	} finally {
		closeSync(fd);
	}
}

class Unmirrored extends Error {}

const IDS = new Set(['input_ids', 'token_ids']);
const AUXILIARY = ['aux_0', 'aux_1', 'aux_2'] as const;

/** One token cannot tell a batch of one from one layer. */
function formOf(tree: Pickled, hiddenSize: number): Form | null {
	if (tree === null || typeof tree !== 'object' || tree.kind !== 'dict') throw new Unmirrored('it holds no dict');
	const entries = [...tree.entries].map(([key, value]) => [String(key), value] as const);
	const ids = entries.find(([key]) => IDS.has(key))?.[1];
	const tokens = isTensor(ids) ? (ids.shape.at(-1) ?? 0) : 0;
	if (tokens === 0) throw new Unmirrored('it holds no token ids');
	if (tokens === 1) return null;
	if (isUniversal(tree, tokens, hiddenSize)) return LAYOUTS.universal.form;
	const both = entries.some(([key]) => key === 'hidden_states') && entries.some(([key]) => key === 'hidden_state');
	const seen = new Set<string>();
	const context = {tokens, hiddenSize, both, seen};
	return {container: 'torch', fields: entries.map(([key, value]) => [key, partOf(key, value, context)] as const)};
}

const isTensor = (value: Pickled | undefined): value is StoredTensor =>
	typeof value === 'object' && value !== null && value.kind === 'stored tensor';

function isUniversal(tree: Pickled, tokens: number, hiddenSize: number): boolean {
	const found = tensorsOf(tree);
	const leaves = leavesOf(LAYOUTS.universal.form);
	return (
		found.length === leaves.length &&
		leaves.every(({name, part}, at) => {
			const {dtype, shape, view} = tensorOf(part, tokens, hiddenSize);
			const [path, stored] = found[at] ?? [];
			if (path !== name || stored?.dtype !== dtype || String(stored.shape) !== String(shape)) return false;
			if (!view) return stored.offset === 0;
			const held = stored.storageBytes / ITEM_BYTES[dtype];
			return stored.offset === view.offset && held === view.elements && String(stored.stride) === String(view.stride);
		})
	);
}

type Context = {
	readonly tokens: number;
	readonly hiddenSize: number;
	/** Both readers' keys: each final is then the one that its reader takes. */
	readonly both: boolean;
	/** Storages met. */
	readonly seen: Set<string>;
};

function partOf(key: string, value: Pickled, context: Context): Part {
	if (isTensor(value)) {
		if (IDS.has(key) || key === 'loss_mask') return numbersOf(key, value, context);
		return statesOf(key, value, null, context);
	}
	if (typeof value !== 'object' || value?.kind !== 'list' || !value.items.every(isTensor))
		throw new Unmirrored(`${key} is no tensor`);
	const items = value.items.filter(isTensor);
	const names = namesOf(key, items.length, context);
	return {kind: 'list', items: items.map((item, at) => statesOf(`${key}[${at}]`, item, names[at] ?? null, context))};
}

function numbersOf(key: string, {dtype, shape}: StoredTensor, {tokens}: Context): Part {
	const right = shape.at(-1) === tokens && (shape.length === 1 || (shape.length === 2 && shape[0] === 1));
	const ids = IDS.has(key);
	const known = dtype === 'I64' || dtype === 'I32' || (!ids && (dtype === 'U8' || dtype === 'BOOL'));
	if (!right || !known) throw new Unmirrored(`${key} is ${dtype} [${shape.join(', ')}]`);
	return {kind: ids ? 'ids' : 'mask', dtype, batch: shape.length === 2};
}

function statesOf(name: string, tensor: StoredTensor, only: StateName | null, context: Context): StatesPart {
	const {dtype, shape, key} = tensor;
	const {tokens, hiddenSize, seen} = context;
	const unfit = new Unmirrored(
		`${name} is ${dtype} [${shape.join(', ')}], with ${tokens} tokens and states ${hiddenSize} wide`,
	);
	if (!/hidden_states?(\[|$)/.test(name) || dtype !== 'BF16') throw unfit;
	if (seen.has(key)) throw new Unmirrored(`${name} shares its storage with another tensor`);
	seen.add(key);
	const [one, two = 0, three = 0] = shape;
	const width = shape.at(-1) ?? 0;
	const rows = shape.length === 2 && one === tokens;
	const batch = shape.length === 3 && one === 1 && two === tokens;
	const layers = shape.length === 3 && one === tokens && three === hiddenSize;
	if ((!rows && !batch && !layers) || width % hiddenSize !== 0) throw unfit;
	const count = layers ? two : width / hiddenSize;
	if (only !== null && count !== 1) throw unfit;
	const columns = only !== null ? [only] : namesOf(name, count, context);
	return {kind: 'states', columns, as: rows ? 'rows' : batch ? 'batch' : 'layers'};
}

/** One is a final, three are the auxiliary ones, four are both. */
function namesOf(name: string, count: number, {both}: Context): readonly StateName[] {
	const final = both ? (name.startsWith('hidden_states') ? 'final_pre' : 'final_post') : 'final';
	if (count === 3) return AUXILIARY;
	if (count === 1) return [final];
	if (count === 4) return [...AUXILIARY, final];
	throw new Unmirrored(`${name} holds ${count} states`);
}
