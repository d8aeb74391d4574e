import type {Container, PlacedTensor} from '../tensor/container.ts';
import {type Suspect, suspect} from './verdict.ts';

/** One layer's states within a tensor: row t starts at element `start + t * step` of the range, `width` elements. */
export type LayerView = {
	readonly layer: number;
	readonly tensor: PlacedTensor;
	readonly start: number;
	readonly step: number;
	readonly width: number;
};

/** Layers that belong together. `final` is the last one's side of the norm, as readers of this layout take it. */
export type LayerGroup = {readonly views: readonly LayerView[]; readonly final: 'pre-norm' | 'post-norm'};

/** A training sample, read off names and shapes: SpecForge, speculators (list or one tensor), both at once. */
export type SampleShape = {
	readonly tokens: number;
	readonly ids: PlacedTensor;
	readonly mask: PlacedTensor | null;
	readonly groups: readonly LayerGroup[];
	/** Which dimension of a tensor counts tokens, by the tensor's name. */
	readonly tokenAxis: ReadonlyMap<string, number>;
};

const IDS = ['input_ids', 'token_ids'];
const FINAL = ['hidden_state', 'target_hidden_states'];
const AUXILIARY = ['aux_hidden_state', 'aux_hidden_states'];

/**
 * The sample in a container; null when it holds none, a suspect when its parts do not fit. `hidden` is the width that a
 * state must have, null for any.
 */
export function sampleShape(container: Container, hidden: number | null): SampleShape | Suspect | null {
	const named = (names: readonly string[]) => container.tensors.find(({name}) => names.includes(name));
	const ids = named(IDS);
	if (!ids || ids.shape.length === 0 || ids.shape.slice(0, -1).some(size => size !== 1)) return null;
	const tokens = ids.shape.at(-1) ?? 0;
	const mask = named(['loss_mask']) ?? null;
	const states = container.tensors.filter(({name}) => /^hidden_states(\[\d+\])?$/.test(name));
	const final = named(FINAL);
	const auxiliary = named(AUXILIARY);
	if (states.length === 0 && !final && !auxiliary) return null;
	const tokenAxis = new Map([[ids.name, ids.shape.length - 1]]);
	if (mask) tokenAxis.set(mask.name, mask.shape.length - 1);
	for (const tensor of [...states, ...(final ? [final] : []), ...(auxiliary ? [auxiliary] : [])]) {
		if (tensor.shape.length < 2 || tensor.shape.length > 3) return null;
		tokenAxis.set(tensor.name, axisOf(tensor, tokens));
	}
	for (const [name, axis] of tokenAxis) {
		const held = container.tensors.find(each => each.name === name)?.shape[axis];
		if (held !== tokens) return suspect('shape', `${name} is for ${held} tokens, ${ids.name} for ${tokens}`);
	}
	const width = hidden ?? final?.shape.at(-1) ?? states[0]?.shape.at(-1) ?? 0;
	const groups: LayerGroup[] = [];
	const together: LayerView[] = [];
	for (const each of states) together.push(...viewsOf(each, axis(tokenAxis, each), width, together.length));
	if (together.length > 0) groups.push({views: together, final: 'pre-norm'});
	const split: LayerView[] = [];
	for (const each of [auxiliary, final]) {
		if (each) split.push(...viewsOf(each, axis(tokenAxis, each), width, split.length));
	}
	if (split.length > 0) groups.push({views: split, final: 'post-norm'});
	for (const {tensor, width: own} of [...together, ...split]) {
		if (own !== width)
			return suspect('shape', `${tensor.name} is ${tensor.shape.at(-1)} wide where states are ${width}`);
	}
	return {tokens, ids, mask, groups, tokenAxis};
}

const axis = (axes: ReadonlyMap<string, number>, {name}: PlacedTensor): number => axes.get(name) ?? 0;

/** [T, H]; [1, T, k*H]; or [T, L, H]. A first dimension of 1 is a batch, unless there is one token and the names say layers. */
function axisOf({shape}: PlacedTensor, tokens: number): number {
	if (shape.length === 2) return 0;
	return shape[0] === 1 && !(tokens === 1 && shape[1] !== 1) ? 1 : 0;
}

function viewsOf(tensor: PlacedTensor, tokenAxis: number, width: number, from: number): LayerView[] {
	const {shape, stride, offset} = tensor;
	const step = stride[tokenAxis] ?? 0;
	const last = shape.at(-1) ?? 0;
	if (shape.length === 3 && tokenAxis === 0) {
		const between = stride[1] ?? 0;
		return Array.from({length: shape[1] ?? 0}, (_, at) => ({
			layer: from + at,
			tensor,
			start: offset + at * between,
			step,
			width: last,
		}));
	}
	// Only these lay states side by side in one row; elsewhere another width is another width.
	const sideBySide = tensor.name === 'hidden_states' || AUXILIARY.includes(tensor.name);
	if (!sideBySide || width === 0 || last % width !== 0)
		return [{layer: from, tensor, start: offset, step, width: last}];
	return Array.from({length: last / width}, (_, at) => ({
		layer: from + at,
		tensor,
		start: offset + at * width,
		step,
		width,
	}));
}

/** Which layer an element of a range belongs to; null when that is not told. */
export function layerAt(sample: SampleShape, range: PlacedTensor['range'], element: number): number | null {
	for (const {views} of sample.groups) {
		for (const view of views) {
			const place = element - view.start;
			if (view.tensor.range !== range || place < 0) continue;
			if (view.step === 0 ? place < view.width : place % view.step < view.width) return view.layer;
		}
	}
	return null;
}

/** The layer that a whole range is; null when it holds several or none. */
export function layerOf(sample: SampleShape, range: PlacedTensor['range']): number | null {
	const layers = new Set(
		sample.groups.flatMap(({views}) => views.filter(view => view.tensor.range === range).map(view => view.layer)),
	);
	return layers.size === 1 ? ([...layers][0] ?? null) : null;
}
