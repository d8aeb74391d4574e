import {type Tensor, type Tree, tensor} from '../tensor/pickle.ts';
import type {StateName} from './states.ts';

/** What stands under one key of a sample: ids, mask, states, or states as a list. */
export type Part = ListPart | StatesPart | {readonly kind: 'list'; readonly items: readonly StatesPart[]};

/** One number per token, [T]; as a batch of one, [1, T]. */
export type ListPart = {
	readonly kind: 'ids' | 'mask';
	readonly dtype: 'I64' | 'I32' | 'U8' | 'BOOL';
	readonly batch: boolean;
};

/** States side by side in each row: [T, k·H]; as a batch of one, [1, T, k·H]; or as layers, [T, k, H]. */
export type StatesPart = {
	readonly kind: 'states';
	readonly columns: readonly StateName[];
	readonly as: 'rows' | 'batch' | 'layers';
	/** The columns of the storage that this is a view into, where several share one. */
	readonly within?: readonly StateName[];
};

/** What a sample file holds, key by key in its order, whatever the count of its tokens. */
export type Form = {
	readonly container: 'torch' | 'safetensors';
	readonly fields: readonly (readonly [key: string, part: Part])[];
};

/** A tensor of a form by its place in the tree, `hidden_states[0]`. */
export type Leaf = {readonly name: string; readonly key: string; readonly part: ListPart | StatesPart};

export const leavesOf = ({fields}: Form): Leaf[] =>
	fields.flatMap(([key, part]) =>
		part.kind === 'list'
			? part.items.map((item, at) => ({name: `${key}[${at}]`, key, part: item}))
			: [{name: key, key, part}],
	);

/** The tree of tensors for so many tokens; states are `hiddenSize` wide. */
export function treeOf({fields}: Form, tokens: number, hiddenSize: number): Tree {
	const made = (part: ListPart | StatesPart): Tensor => tensorOf(part, tokens, hiddenSize);
	return {
		kind: 'dict',
		entries: fields.map(([key, part]) => [
			key,
			part.kind === 'list' ? {kind: 'list', items: part.items.map(made)} : made(part),
		]),
	};
}

export function tensorOf(part: ListPart | StatesPart, tokens: number, hiddenSize: number): Tensor {
	if (part.kind !== 'states') return tensor(part.dtype, part.batch ? [1, tokens] : [tokens]);
	const {columns, as, within} = part;
	const width = columns.length * hiddenSize;
	const shape = {rows: [tokens, width], batch: [1, tokens, width], layers: [tokens, columns.length, hiddenSize]}[as];
	if (!within) return tensor('BF16', shape);
	const row = within.length * hiddenSize;
	const stride = {rows: [row, 1], batch: [tokens * row, row, 1], layers: [row, hiddenSize, 1]}[as];
	const offset = within.indexOf(columns[0] ?? 'final') * hiddenSize;
	return {...tensor('BF16', shape), view: {storage: within.join(' '), elements: tokens * row, offset, stride}};
}

/** The states that a dump must have for a file of this form. */
export function neededStates(form: Form): readonly StateName[] {
	const needed = leavesOf(form).flatMap(({part}) => (part.kind === 'states' ? (part.within ?? part.columns) : []));
	return [...new Set(needed)];
}

/** Its keys in order, each with what it holds: the same words for the same form. */
export const keysOf = ({fields}: Form): string => fields.map(([key, part]) => `${key}: ${partWords(part)}`).join('; ');

function partWords(part: Part): string {
	if (part.kind === 'list') return part.items.map(partWords).join(', ');
	if (part.kind !== 'states') return `${part.dtype}${part.batch ? ' [1, T]' : ' [T]'}`;
	const many = part.columns.length > 1 ? part.columns.length : '';
	const shape = {rows: `[T, ${many}H]`, batch: `[1, T, ${many}H]`, layers: `[T, ${many}, H]`}[part.as];
	return `${part.columns.join('+')} ${shape}${part.within ? ' shared' : ''}`;
}
