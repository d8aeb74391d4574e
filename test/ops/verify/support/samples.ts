import {mkdirSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {type Tree, tensor} from '../../../../src/ops/tensor/pickle.ts';
import {planSafetensors} from '../../../../src/ops/tensor/safetensors.ts';
import {planTorchFile, torchFile} from '../../../../src/ops/tensor/torch-file.ts';

/** Token ids of a sample, the same in file and dataset. */
export const idsOf = (index: number, tokens: number): number[] =>
	Array.from({length: tokens}, (_, at) => (index * 31 + at * 7) % 1_000);

export const int64 = (values: readonly number[]): Buffer => Buffer.from(BigInt64Array.from(values, BigInt).buffer);

/** Finite BF16 values that differ by layer, row and column. */
export function states(tokens: number, width: number, layer: number): Buffer {
	const values = Uint16Array.from({length: tokens * width}, (_, at) => 0x3f00 + ((at * 13 + layer * 29) % 0x7f));
	return Buffer.from(values.buffer);
}

export type Parts = {ids: Buffer; layers: Buffer[]; mask: Buffer};

/** The incident's layout: ids, four states as a list, mask. `change` damages the parts before they are written. */
export function legacySample(
	index: number,
	tokens: number,
	width = 64,
	change: (parts: Parts) => void = () => {},
): Buffer {
	const parts: Parts = {
		ids: int64(idsOf(index, tokens)),
		layers: [0, 1, 2, 3].map(layer => states(tokens, width, layer)),
		mask: int64(Array(tokens).fill(1)),
	};
	change(parts);
	const state = tensor('BF16', [tokens, width]);
	const tree: Tree = {
		kind: 'dict',
		entries: [
			['input_ids', tensor('I64', [tokens])],
			['hidden_states', {kind: 'list', items: [state, state, state, state]}],
			['loss_mask', tensor('I64', [tokens])],
		],
	};
	return Buffer.concat(torchFile(planTorchFile(`data_${index}`, tree), [parts.ids, ...parts.layers, parts.mask]));
}

/** speculators' layout: `[T, L, H]` and the ids. */
export function safetensorsSample(
	index: number,
	tokens: number,
	width = 64,
	change: (data: Buffer) => void = () => {},
): Buffer {
	const {header, tensors} = planSafetensors([
		{name: 'hidden_states', dtype: 'BF16', shape: [tokens, 4, width]},
		{name: 'token_ids', dtype: 'I64', shape: [tokens]},
	]);
	const data = states(tokens, 4 * width, 0);
	change(data);
	const parts: Record<string, Buffer> = {hidden_states: data, token_ids: int64(idsOf(index, tokens))};
	return Buffer.concat([header, ...tensors.map(({name}) => parts[name] ?? Buffer.alloc(0))]);
}

export function put(path: string, bytes: Buffer | string): string {
	mkdirSync(dirname(path), {recursive: true});
	writeFileSync(path, bytes);
	return path;
}

/** One object per line. */
export const dataset = (counts: readonly number[], mask?: (index: number) => number[] | undefined): string =>
	counts
		.map((tokens, index) => `${JSON.stringify({input_ids: idsOf(index, tokens), loss_mask: mask?.(index)})}\n`)
		.join('');
