import {planSafetensors, type SafetensorsPlan, safetensorsPieces} from '../tensor/safetensors.ts';
import {planTorchFile, type TorchPlan, torchPieces} from '../tensor/torch-file.ts';
import {int64, type Sample} from './dataset.ts';
import type {Pieces} from './direct-write.ts';
import {type Form, type Leaf, type ListPart, leavesOf, neededStates, tensorOf, treeOf} from './forms.ts';
import {type Extraction, type Layout, layoutOf, sampleStem} from './layouts.ts';
import {knownSum} from './look.ts';
import {type StateName, type States, stateWords} from './states.ts';

/** A sample's file before its data is known. */
export type SamplePlan =
	| {readonly container: 'torch'; readonly torch: TorchPlan; readonly bytes: number}
	| {readonly container: 'safetensors'; readonly safetensors: SafetensorsPlan; readonly bytes: number};

/** `root` is the name inside a torch file: that of the sample's own file. */
export function planForm(form: Form, root: string, tokens: number, hiddenSize: number): SamplePlan {
	if (form.container === 'torch') {
		const torch = planTorchFile(root, treeOf(form, tokens, hiddenSize));
		return {container: 'torch', torch, bytes: torch.bytes};
	}
	const shapes = leavesOf(form).map(({name, part}) => ({name, ...tensorOf(part, tokens, hiddenSize)}));
	const safetensors = planSafetensors(shapes.map(({name, dtype, shape}) => ({name, dtype, shape})));
	return {container: 'safetensors', safetensors, bytes: safetensors.bytes};
}

export function planSample(extraction: Extraction, index: number, tokens: number): SamplePlan {
	const layout = layoutOf(extraction);
	return planForm(layout.form, sampleStem(layout, index), tokens, extraction.hiddenSize);
}

/** Size of the finished file of a sample, from its token count: one stat finds a truncated or foreign file. */
export const sampleBytes = (extraction: Extraction, index: number, tokens: number): number =>
	planSample(extraction, index, tokens).bytes;

/** The finished file as pieces to write one after the other. States that stand alone are not copied. */
export const samplePieces = (extraction: Extraction, plan: SamplePlan, sample: Sample, states: States): Pieces =>
	formPieces(layoutOf(extraction).form, plan, sample, states, extraction.hiddenSize);

export function formPieces(form: Form, plan: SamplePlan, sample: Sample, states: States, hiddenSize: number): Pieces {
	const data = storagesOf(form).map(leaf => [leaf.name, dataOf(leaf, sample, states, hiddenSize)] as const);
	if (plan.container === 'safetensors') return safetensorsPieces(plan.safetensors, new Map(data), knownSum);
	return torchPieces(
		plan.torch,
		data.map(([, bytes]) => bytes),
		knownSum,
	);
}

/** Where in the file of a sample each state lies that stands there as it comes. */
export function placesOf(extraction: Extraction, index: number, tokens: number): ReadonlyMap<StateName, number> {
	const plan = planSample(extraction, index, tokens);
	const places = new Map<StateName, number>();
	if (plan.container !== 'torch') return places;
	const offsets = new Map(plan.torch.zip.items.map(({name, dataOffset}) => [name.replace(/.*\//, ''), dataOffset]));
	for (const [at, {part}] of storagesOf(layoutOf(extraction).form).entries()) {
		const offset = offsets.get(`${at}`);
		if (part.kind !== 'states' || offset === undefined) continue;
		const [only, ...others] = part.within ?? part.columns;
		if (only && others.length === 0) places.set(only, offset);
		// A dump names the side that a form leaves open.
		if (only === 'final' && others.length === 0) places.set('final_pre', offset);
	}
	return places;
}

/** The first leaf of each storage, in the order of the storages. */
export function storagesOf(form: Form): Leaf[] {
	const seen = new Set<string>();
	return leavesOf(form).filter(({part}) => {
		if (part.kind !== 'states' || !part.within) return true;
		const name = part.within.join(' ');
		return !seen.has(name) && seen.add(name);
	});
}

function dataOf({part}: Leaf, sample: Sample, states: States, hiddenSize: number): Buffer {
	if (part.kind !== 'states') return numbers(part, part.kind === 'ids' ? sample.inputIds : sample.lossMask);
	return sideBySide(
		(part.within ?? part.columns).map(name => stateFor(name, states)),
		hiddenSize,
	);
}

export function numbers({dtype}: ListPart, values: readonly number[]): Buffer {
	if (dtype === 'I64') return int64(values);
	if (dtype === 'I32') return Buffer.from(Int32Array.from(values).buffer);
	return Buffer.from(dtype === 'BOOL' ? values.map(value => (value === 0 ? 0 : 1)) : values);
}

/** A form of unknown side takes the only final there is; of two the one before the norm, as its first readers want it. */
export const stateIn = (name: StateName, states: States): Buffer | undefined =>
	name === 'final' ? (states.final ?? states.final_pre) : states[name];

/** What of a form a dump does not give, in words; null when nothing is missing. `held`: the states that it has. */
export function missingWords({form}: Layout, held: readonly StateName[]): string | null {
	const missing = neededStates(form).filter(
		name => !held.includes(name) && !(name === 'final' && held.includes('final_pre')),
	);
	if (missing.length === 0) return null;
	return `it stores ${missing.map(stateWords).join(' and ')}, and the dumps of this server hold ${held.map(stateWords).join(', ')}`;
}

function stateFor(name: StateName, states: States): Buffer {
	const bytes = stateIn(name, states);
	if (!bytes) throw new Error(`the dump holds no state ${name}`);
	return bytes;
}

/** Rows [T, k·H] of k states [T, H]. */
function sideBySide(columns: readonly Buffer[], hiddenSize: number): Buffer {
	const [first] = columns;
	if (first && columns.length === 1) return first;
	const bytes = hiddenSize * 2;
	const made = Buffer.allocUnsafe(columns.reduce((sum, column) => sum + column.length, 0));
	let to = 0;
	for (let from = 0; from < (first?.length ?? 0); from += bytes)
		for (const column of columns) to += column.copy(made, to, from, from + bytes);
	return made;
}
