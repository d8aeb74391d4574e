import {mkdirSync, readFileSync, renameSync, truncateSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {mirrorTree} from '../../../src/ops/extract/mirror.ts';
import type {StorageDtype} from '../../../src/ops/tensor/dtype.ts';
import {type Tree, tensor} from '../../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../../src/ops/tensor/torch-file.ts';
import {Bench} from './support/bench.ts';
import {fiveStates, packed} from './support/hook-dumps.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

type Part = readonly [dtype: StorageDtype, shape: readonly number[], data: Buffer];
type Made = readonly (readonly [key: string, part: Part | readonly Part[]])[];
type Maker = (ids: readonly number[], mask: readonly number[]) => Made;

const isPart = (part: Part | readonly Part[]): part is Part => typeof part[0] === 'string';
const leaf = ([dtype, shape]: Part): Tree => tensor(dtype, shape);

/** A file as some other program wrote it. */
function fileOf(index: number, make: Maker): Buffer {
	const record = bench.records[index];
	if (!record) throw new Error('no such record');
	const made = make(record.input_ids, record.loss_mask);
	const entries = made.map(
		([key, part]) => [key, isPart(part) ? leaf(part) : {kind: 'list', items: part.map(leaf)}] as const,
	);
	const parts = made.flatMap(([, part]) => (isPart(part) ? [part] : part));
	const plan = planTorchFile(`data_${index}`, {kind: 'dict', entries: entries as [string, Tree][]});
	return Buffer.concat(
		torchFile(
			plan,
			parts.map(([, , data]) => data),
		),
	);
}

function put(index: number, make: Maker, ending = '.pt'): string {
	const path = bench.path(index).replace(/\.pt$/, ending);
	mkdirSync(dirname(path), {recursive: true});
	writeFileSync(path, fileOf(index, make));
	return path;
}

function beside(...states: Buffer[]): Buffer {
	const rows = (states[0]?.length ?? 0) / (HIDDEN_SIZE * 2);
	return Buffer.concat(
		Array.from({length: rows}, (_, row) =>
			states.map(each => each.subarray(row * HIDDEN_SIZE * 2, (row + 1) * HIDDEN_SIZE * 2)),
		).flat(),
	);
}

const H = HIDDEN_SIZE;
const rows = (state: Buffer): Part => ['BF16', [state.length / H / 2, H], state];
const idsPart = (ids: readonly number[]): Part => ['I64', [ids.length], packed(ids)];
const int32 = (values: readonly number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);

const FORMS: Readonly<Record<string, Maker>> = {
	'another order, final behind the norm': (ids, mask) => {
		const {aux_0, aux_1, aux_2, final_post} = fiveStates(ids);
		return [
			['loss_mask', idsPart(mask)],
			['hidden_states', [aux_0, aux_1, aux_2, final_post].map(rows)],
			['input_ids', idsPart(ids)],
		];
	},
	"SpecForge's keys, final before the norm, no mask": ids => {
		const {aux_0, aux_1, aux_2, final_pre} = fiveStates(ids);
		return [
			['input_ids', idsPart(ids)],
			['aux_hidden_state', ['BF16', [1, ids.length, 3 * H], beside(aux_0, aux_1, aux_2)]],
			['hidden_state', ['BF16', [1, ids.length, H], final_pre]],
		];
	},
	'one tensor of layers, ids as a batch': (ids, mask) => {
		const {aux_0, aux_1, aux_2, final_post} = fiveStates(ids);
		return [
			['input_ids', ['I64', [1, ids.length], packed(ids)]],
			['hidden_states', ['BF16', [ids.length, 4, H], beside(aux_0, aux_1, aux_2, final_post)]],
			['loss_mask', ['U8', [1, ids.length], Buffer.from(mask)]],
		];
	},
	'rows side by side, small numbers': (ids, mask) => {
		const {aux_0, aux_1, aux_2, final_pre} = fiveStates(ids);
		return [
			['input_ids', ['I32', [ids.length], int32(ids)]],
			['hidden_states', ['BF16', [ids.length, H], final_pre]],
			['aux_hidden_states', ['BF16', [ids.length, 3 * H], beside(aux_0, aux_1, aux_2)]],
			['loss_mask', ['BOOL', [ids.length], Buffer.from(mask)]],
		];
	},
	"both readers' keys, each with its own storage": (ids, mask) => {
		const {aux_0, aux_1, aux_2, final_pre, final_post} = fiveStates(ids);
		return [
			['input_ids', idsPart(ids)],
			['hidden_states', [aux_0, aux_1, aux_2, final_pre].map(rows)],
			['aux_hidden_state', ['BF16', [1, ids.length, 3 * H], beside(aux_0, aux_1, aux_2)]],
			['hidden_state', ['BF16', [1, ids.length, H], final_post]],
			['loss_mask', idsPart(mask)],
		];
	},
};

test.each(Object.entries(FORMS))(
	'%s: new files are made byte for byte like those that are there',
	async (words, make) => {
		const ending = words.startsWith('one') ? '.ckpt' : '.pt';
		for (const index of [0, 1, 2, 6]) put(index, make, ending);
		await bench.serveHook();
		expect(await bench.run({adopt: true})).toBe(0);
		expect(bench.asked()).toEqual([3, 4, 5, 7, 8, 9, 10, 11]);
		for (const [index] of bench.records.entries()) {
			const path = bench.path(index).replace(/\.pt$/, ending);
			expect(readFileSync(path).equals(fileOf(index, make)), path).toBe(true);
		}
		const norm = words.startsWith('both') ? 'pre post' : /behind|layers/.test(words) ? 'post' : 'pre';
		expect(bench.manifest()).toMatchObject({norm, layout: 'legacy'});
		bench.server.rids.length = 0;
		expect(await bench.run()).toBe(0);
		expect(bench.server.rids).toEqual([]);
	},
);

test('a universal tree is gone on with as one', async () => {
	bench.extraction = {...bench.extraction, layout: 'universal'};
	await bench.serveHook();
	await bench.run();
	const whole = bench.records.map((_, index) => readFileSync(bench.path(index)));
	for (const [index] of bench.records.entries()) if (index > 3) truncateSync(bench.path(index), 500);
	renameSync(bench.file('run.json'), `${bench.file('run.json')}.old`);
	const path = bench.path(9);
	bench.extraction = {...bench.extraction, layout: 'legacy'};
	expect(await bench.run({adopt: true})).toBe(0);
	expect(readFileSync(path).equals(whole[9] ?? Buffer.alloc(0))).toBe(true);
	expect(bench.manifest()).toMatchObject({norm: 'pre post'});
});

const [ORDER, SPECFORGE] = Object.values(FORMS);
if (!ORDER || !SPECFORGE) throw new Error('two forms');

test('a tree of two forms is refused, two files named, wherever the odd one is', async () => {
	await bench.end();
	bench = new Bench(90);
	bench.extraction = {...bench.extraction, groupSize: 30};
	for (let index = 0; index < 90; index++) put(index, index === 38 ? SPECFORGE : ORDER);
	await bench.serveHook();
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(
		/mixes forms: .*data_\d+\.pt holds loss_mask: I64 \[T\]; hidden_states: aux_0 .*, and .*data_38\.pt holds input_ids: I64 \[T\]; aux_hidden_state: aux_0\+aux_1\+aux_2 \[1, T, 3H\]/,
	);
	expect(bench.server.rids).toEqual([]);
	put(89, SPECFORGE);
	// Seen before any file is looked into as a whole.
	expect(() => mirrorTree(bench.extraction)).toThrow(/mixes forms: .*data_0\.pt holds .*, and .*data_89\.pt holds/);
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/mixes forms: .*data_0\.pt holds .*, and .*data_89\.pt holds/);
});

test('two endings are refused, two files named', async () => {
	put(0, ORDER);
	put(7, ORDER, '.ckpt');
	await bench.serveHook();
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/mixes endings: .*data_0\.pt and .*data_7\.ckpt$/);
});

test('damaged files say nothing of the form', async () => {
	for (const index of [0, 5, 11]) truncateSync(put(index, SPECFORGE), 700);
	for (const index of [1, 2, 3]) put(index, SPECFORGE);
	await bench.serveHook();
	expect(await bench.run({adopt: true})).toBe(0);
	for (const [index] of bench.records.entries())
		expect(readFileSync(bench.path(index)).equals(fileOf(index, SPECFORGE))).toBe(true);
});

const twice = (_: Buffer, count: number): Part[] => Array.from({length: count}, () => rows(_));

test.each([
	[
		'five states',
		ids => [
			['input_ids', idsPart(ids)],
			['hidden_states', twice(fiveStates(ids).aux_0, 5)],
		],
		'hidden_states holds 5 states',
	],
	[
		'another type',
		ids => [
			['input_ids', idsPart(ids)],
			['hidden_states', ['F16', [ids.length, 4, H], Buffer.alloc(ids.length * 8 * H)]],
		],
		'hidden_states is F16 [',
	],
	[
		'a tensor of its own',
		ids => [
			['input_ids', idsPart(ids)],
			['logits', rows(fiveStates(ids).aux_0)],
		],
		'logits is BF16 [',
	],
	['no ids', ids => [['hidden_states', twice(fiveStates(ids).aux_0, 4)]], 'it holds no token ids'],
	[
		'other widths',
		ids => [
			['input_ids', idsPart(ids)],
			['hidden_states', ['BF16', [ids.length, 65], Buffer.alloc(ids.length * 130)]],
		],
		'hidden_states is BF16 [',
	],
] as readonly [string, Maker, string][])('a form with %s is refused with the reason', async (_, make, words) => {
	const path = put(3, make);
	await bench.serveHook();
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toContain(`Refused: ${path}: ${words}`);
	expect(bench.lines.at(-1)).toMatch(/: a tree of this form cannot be gone on with$/);
	expect(bench.server.rids).toEqual([]);
});
