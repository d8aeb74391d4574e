import {describe, expect, test} from 'vitest';
import type {Container, DataRange, PlacedTensor} from '../../../src/ops/tensor/container.ts';
import {strides} from '../../../src/ops/tensor/pickle.ts';
import {bufferSource} from '../../../src/ops/tensor/source.ts';
import {layerAt, layerOf, type SampleShape, sampleShape} from '../../../src/ops/verify/sample-shape.ts';

const range = (name: string): DataRange => ({
	name,
	bytes: 0,
	offset: 0,
	crc: null,
	open: () => bufferSource(Buffer.alloc(0)),
});

const whole = (name: string, shape: readonly number[]): PlacedTensor => ({
	name,
	dtype: name.endsWith('ids') || name === 'loss_mask' ? 'I64' : 'BF16',
	shape,
	stride: strides(shape),
	offset: 0,
	range: range(name),
});

const of = (...tensors: readonly PlacedTensor[]): Container => ({
	format: 'torch',
	ranges: tensors.map(each => each.range),
	tensors,
	checksums: true,
	notes: [],
});

function shapeOf(...tensors: readonly PlacedTensor[]): SampleShape {
	const shape = sampleShape(of(...tensors), null);
	if (shape === null || 'verdict' in shape) throw new Error('a sample');
	return shape;
}

/** Per group: where each layer starts, its step and width. */
const views = ({groups}: SampleShape) =>
	groups.map(group => [group.final, ...group.views.map(({layer, start, step, width}) => [layer, start, step, width])]);

describe('layouts', () => {
	test('SpecForge: three states side by side and the final one', () => {
		const shape = shapeOf(
			whole('input_ids', [5]),
			whole('loss_mask', [5]),
			whole('hidden_state', [1, 5, 8]),
			whole('aux_hidden_state', [1, 5, 24]),
		);
		expect(shape.tokens).toBe(5);
		expect(views(shape)).toEqual([['post-norm', [0, 0, 24, 8], [1, 8, 24, 8], [2, 16, 24, 8], [3, 0, 8, 8]]]);
	});

	test('speculators: one tensor for all layers, also of one token', () => {
		for (const tokens of [1, 5]) {
			const shape = shapeOf(whole('token_ids', [tokens]), whole('hidden_states', [tokens, 4, 8]));
			expect(views(shape)).toEqual([['pre-norm', [0, 0, 32, 8], [1, 8, 32, 8], [2, 16, 32, 8], [3, 24, 32, 8]]]);
		}
	});

	test('both at once in one storage: two groups that look at the same data', () => {
		const storage = range('data/1');
		const view = (name: string, shape: readonly number[], offset: number): PlacedTensor => ({
			...whole(name, shape),
			stride: shape.length === 3 ? [200, 40, 1] : [40, 1],
			offset,
			range: storage,
		});
		const shape = shapeOf(
			whole('input_ids', [5]),
			view('aux_hidden_state', [1, 5, 24], 0),
			view('hidden_state', [1, 5, 8], 32),
			...[0, 1, 2, 3].map(at => view(`hidden_states[${at}]`, [5, 8], at * 8)),
		);
		expect(views(shape)).toEqual([
			['pre-norm', [0, 0, 40, 8], [1, 8, 40, 8], [2, 16, 40, 8], [3, 24, 40, 8]],
			['post-norm', [0, 0, 40, 8], [1, 8, 40, 8], [2, 16, 40, 8], [3, 32, 40, 8]],
		]);
		expect([0, 39 + 40, 24, 15].map(element => layerAt(shape, storage, element))).toEqual([0, 3, 3, 1]);
		expect(layerOf(shape, storage)).toBe(null);
	});

	test('a batch of one is its only sample; more than one is no layout that is known', () => {
		expect(shapeOf(whole('input_ids', [1, 5]), whole('hidden_state', [1, 5, 8])).tokens).toBe(5);
		expect(sampleShape(of(whole('input_ids', [2, 5]), whole('hidden_state', [2, 5, 8])), null)).toBe(null);
		expect(sampleShape(of(whole('input_ids', [5])), null)).toBe(null);
		expect(sampleShape(of(whole('hidden_state', [1, 5, 8])), null)).toBe(null);
	});
});

test('parts for other token counts do not fit', () => {
	expect(sampleShape(of(whole('input_ids', [5]), whole('hidden_states', [6, 4, 8])), null)).toEqual({
		verdict: 'suspect',
		reason: 'shape',
		words: 'hidden_states is for 6 tokens, input_ids for 5',
		layer: null,
	});
});
