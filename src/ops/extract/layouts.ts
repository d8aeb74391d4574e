import type {ExtractionConfig} from '../target.ts';
import {type Tree, tensor} from '../tensor/pickle.ts';
import {expectedBytes} from '../tensor/torch-file.ts';

export type Layout = ExtractionConfig['layout'];

/**
 * What one sample file holds, from its token count. `legacy` is the incident's tree: ids, the three auxiliary states and
 * the final one as a list of [T, H] tensors, loss mask. Other layouts are refused until they are written.
 */
export function sampleTree(layout: Layout, tokens: number, hiddenSize: number): Tree {
	if (layout !== 'legacy') throw new Error(`layout ${layout} cannot be written yet`);
	const state = tensor('BF16', [tokens, hiddenSize]);
	return {
		kind: 'dict',
		entries: [
			['input_ids', tensor('I64', [tokens])],
			['hidden_states', {kind: 'list', items: [state, state, state, state]}],
			['loss_mask', tensor('I64', [tokens])],
		],
	};
}

/** Size of the finished file of a sample, from its token count: one stat finds a truncated or foreign file. */
export const sampleBytes = (layout: Layout, index: number, tokens: number, hiddenSize: number): number =>
	expectedBytes(`data_${index}`, sampleTree(layout, tokens, hiddenSize));

/** `rows_{g}-{g+size}`, right end not included. */
export function groupName(index: number, groupSize: number): string {
	const from = Math.floor(index / groupSize) * groupSize;
	return `rows_${from}-${from + groupSize}`;
}

export const sampleName = (index: number): string => `data_${index}.pt`;
