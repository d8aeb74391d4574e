import {closeSync, mkdtempSync, openSync, rmSync, truncateSync, utimesSync, writeSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, describe, expect, test} from 'vitest';
import {type Tree, tensor} from '../../../src/ops/tensor/pickle.ts';
import {planSafetensors} from '../../../src/ops/tensor/safetensors.ts';
import {bufferSource} from '../../../src/ops/tensor/source.ts';
import {planTorchFile, torchFile} from '../../../src/ops/tensor/torch-file.ts';
import {type CheckOptions, checkFile, checkSource} from '../../../src/ops/verify/check-file.ts';
import {sideOfNorm} from '../../../src/ops/verify/norm.ts';
import {SizeRules} from '../../../src/ops/verify/size-rules.ts';
import type {Level} from '../../../src/ops/verify/verdict.ts';
import {idsOf, int64, legacySample, put, safetensorsSample} from './support/samples.ts';

const directory = mkdtempSync(join(tmpdir(), 'relight-check-'));
afterAll(() => rmSync(directory, {recursive: true}));

const VALUES: CheckOptions = {level: 'values', hidden: null, normWeight: null};

const look = (bytes: Buffer, name: string, options: Partial<CheckOptions> = {}) =>
	checkSource(bufferSource(bytes), name, {...VALUES, ...options});

const suspect = (reason: string, words: string, layer: number | null = null) => ({
	verdict: 'suspect',
	reason,
	words,
	layer,
});

describe('values', () => {
	test('a whole sample is done; its tokens and ids are told', () => {
		expect(look(legacySample(7, 40), 'data_7.pt')).toEqual({
			verdict: {verdict: 'done'},
			tokens: 40,
			ids: 3_010_742_298,
			normChecked: false,
			notes: [],
		});
	});

	test.each([0, 1, 2, 3])('NaN in state %i is of that layer, also in the last element', layer => {
		const bytes = legacySample(7, 40, 64, ({layers}) => layers[layer]?.writeUInt16LE(0x7fc0, 40 * 64 * 2 - 2));
		expect(look(bytes, 'data_7.pt').verdict).toEqual(
			suspect('not finite', `hidden_states[${layer}] holds NaN or infinity`, layer),
		);
	});

	test.each([0, 1, 2, 3])('infinity in layer %i of one tensor for all layers is of that layer', layer => {
		const bytes = safetensorsSample(7, 40, 64, data => data.writeUInt16LE(0xff80, (5 * 256 + layer * 64 + 3) * 2));
		expect(look(bytes, 'hs_7.safetensors').verdict).toEqual(
			suspect('not finite', 'hidden_states holds NaN or infinity', layer),
		);
	});

	test.each([
		['F8_E4M3', 0x7f, 0x7e],
		['F8_E5M2', 0x7c, 0x7b],
	] as const)('states of %s: not finite is what that type means by it', (dtype, bad, largest) => {
		const {header, tensors} = planSafetensors([
			{name: 'hidden_states', dtype, shape: [40, 4, 64]},
			{name: 'token_ids', dtype: 'I64', shape: [40]},
		]);
		const file = (value: number): Buffer => {
			const states = Buffer.from(
				Uint8Array.from({length: 40 * 256}, (_, at) => 0x30 + ((at * 7 + (at >> 6) * 3) % 0x20)),
			);
			states[9 * 256 + 2 * 64 + 5] = value;
			const parts: Record<string, Buffer> = {hidden_states: states, token_ids: int64(idsOf(7, 40))};
			return Buffer.concat([header, ...tensors.map(({name}) => parts[name] ?? Buffer.alloc(0))]);
		};
		expect(look(file(largest), 'hs_7.safetensors').verdict).toEqual({verdict: 'done'});
		expect(look(file(bad), 'hs_7.safetensors').verdict).toEqual(
			suspect('not finite', 'hidden_states holds NaN or infinity', 2),
		);
	});

	test('one layer stored twice', () => {
		const bytes = legacySample(7, 40, 64, ({layers}) => layers[0]?.copy(layers[2] ?? Buffer.alloc(0)));
		expect(look(bytes, 'data_7.pt').verdict).toEqual(suspect('layers alike', 'state 2 equals state 0', 2));
		const columns = safetensorsSample(7, 40, 64, data => {
			for (let row = 0; row < 40; row++) data.copy(data, (row * 4 + 3) * 128, (row * 4 + 1) * 128, (row * 4 + 2) * 128);
		});
		expect(look(columns, 'hs_7.safetensors').verdict).toEqual(suspect('layers alike', 'state 3 equals state 1', 3));
	});

	test('a page of zeros inside states, whatever the checksum says', () => {
		const bytes = legacySample(7, 100, 64, ({layers}) => layers[1]?.fill(0, 4_000, 12_500));
		expect(look(bytes, 'data_7.pt').verdict).toEqual(suspect('zero pages', 'hidden_states[1] has 1 zeroed pages', 1));
	});

	test('ids that cannot be, a mask that trains nothing', () => {
		const negative = legacySample(7, 40, 64, ({ids}) => ids.writeBigInt64LE(-1n, 8));
		expect(look(negative, 'data_7.pt').verdict).toEqual(suspect('ids', 'token 1 of input_ids is no id'));
		const huge = legacySample(7, 40, 64, ({ids}) => ids.writeBigInt64LE(1n << 40n, 16));
		expect(look(huge, 'data_7.pt').verdict).toEqual(suspect('ids', 'token 2 of input_ids is no id'));
		const empty = legacySample(7, 40, 64, ({mask}) => mask.fill(0));
		expect(look(empty, 'data_7.pt').verdict).toEqual(suspect('mask', 'loss_mask is all zero'));
	});
});

describe('shapes', () => {
	test('a width that was not asked for', () => {
		expect(look(legacySample(7, 40), 'data_7.pt', {hidden: 32, level: 'structure'}).verdict).toEqual(
			suspect('shape', 'hidden_states[0] is 64 wide where states are 32'),
		);
		expect(look(legacySample(7, 40), 'data_7.pt', {hidden: 64}).verdict).toEqual({verdict: 'done'});
	});

	test('a file named like a sample has to be one; another need not', () => {
		const bytes = Buffer.concat(torchFile(planTorchFile('x', tensor('F32', [2])), [Buffer.alloc(8)]));
		expect(look(bytes, 'data_1.pt').verdict).toEqual(suspect('shape', 'holds no states with their ids'));
		expect(look(bytes, 'weights.pt').verdict).toEqual({verdict: 'done'});
	});
});

describe('the norm', () => {
	const tokens = 12;
	const width = 64;
	/** Rows with a mean square of `scale²` for a weight of ones: each value is ±scale. */
	const rows = (scale: number): Buffer => {
		const bits = new Uint32Array(Float32Array.of(scale).buffer)[0] ?? 0;
		return Buffer.from(
			Uint16Array.from({length: tokens * width}, (_, at) => (bits >> 16) | (at % 3 ? 0 : 0x8000)).buffer,
		);
	};
	const specforge = (final: Buffer): Buffer => {
		const tree: Tree = {
			kind: 'dict',
			entries: [
				['input_ids', tensor('I64', [tokens])],
				['hidden_state', tensor('BF16', [1, tokens, width])],
			],
		};
		return Buffer.concat(
			torchFile(planTorchFile('data_1', tree), [Buffer.alloc(tokens * 8, '\x01\0\0\0\0\0\0\0', 'latin1'), final]),
		);
	};
	const normWeight = new Float32Array(width).fill(1);

	test('a final state on the wrong side of the norm is found for both kinds of layout', () => {
		expect(look(specforge(rows(1)), 'data_1.ckpt', {normWeight})).toMatchObject({
			normChecked: true,
			verdict: {verdict: 'done'},
		});
		expect(look(specforge(rows(8)), 'data_1.ckpt', {normWeight}).verdict).toEqual(
			suspect('norm', 'final state is pre-norm where its layout is post-norm', 0),
		);
		const after = legacySample(1, tokens, width, ({layers}) => rows(1).copy(layers[3] ?? Buffer.alloc(0)));
		expect(look(after, 'data_1.pt', {normWeight}).verdict).toEqual(
			suspect('norm', 'final state is post-norm where its layout is pre-norm', 3),
		);
		const before = legacySample(1, tokens, width, ({layers}) => rows(8).copy(layers[3] ?? Buffer.alloc(0)));
		expect(look(before, 'data_1.pt', {normWeight})).toMatchObject({normChecked: true, verdict: {verdict: 'done'}});
	});

	test('between the two sides nothing is said', () => {
		const side = (scale: number) => sideOfNorm([rows(scale).subarray(0, width * 2)], 'BF16', normWeight);
		expect([0.25, 0.875, 1, 1.25, 8].map(side)).toEqual(['pre-norm', null, 'post-norm', null, 'pre-norm']);
		const half = Buffer.from(Uint16Array.from({length: width}, () => 0x3c00).buffer);
		expect(sideOfNorm([half], 'F16', normWeight)).toBe('post-norm');
		expect(sideOfNorm([half], 'I64', normWeight)).toBe(null);
	});

	test('a weight of another width checks nothing and says so', () => {
		const weight = new Float32Array(32).fill(1);
		expect(look(specforge(rows(8)), 'data_1.ckpt', {normWeight: weight})).toMatchObject({
			normChecked: false,
			verdict: {verdict: 'done'},
		});
	});
});

describe('stat', () => {
	const STAT: CheckOptions = {level: 'stat', hidden: null, normWeight: null};

	test.each([
		['data_%.pt', legacySample],
		['hs_%.safetensors', safetensorsSample],
	] as const)('%s: once a layout is known the size alone tells the tokens, and every cut is seen', (pattern, make) => {
		const named = (index: number): string => pattern.replace('%', String(index));
		const rules = new SizeRules();
		const first = put(join(directory, named(1)), make(1, 300));
		expect(checkFile(first, STAT, rules).tokens).toBe(300);
		for (const tokens of [1, 2, 255, 256, 257, 65_536]) {
			expect([tokens, rules.tokensOf(named(40_000), make(40_000, tokens, 64).length)]).toEqual([tokens, tokens]);
		}
		const whole = make(2, 300);
		const path = put(join(directory, named(2)), whole);
		let suspects = 0;
		for (let cut = 1; cut < 2_000; cut += 7) {
			truncateSync(path, whole.length - cut);
			const {verdict, tokens} = checkFile(path, STAT, rules);
			if (verdict.verdict === 'suspect') suspects++;
			// The size of another count: only the dataset's count could tell.
			else expect(make(2, tokens ?? 0).length).toBe(whole.length - cut);
		}
		expect(suspects).toBeGreaterThan(280);
	});

	test('a layout that is met later is looked into and learnt, not accused', () => {
		const rules = new SizeRules();
		expect(checkFile(put(join(directory, 'data_10.pt'), legacySample(10, 50)), STAT, rules).tokens).toBe(50);
		const other = put(join(directory, 'data_11.pt'), legacySample(11, 50, 96));
		expect(checkFile(other, STAT, rules)).toMatchObject({verdict: {verdict: 'done'}, tokens: 50});
		expect(rules.tokensOf('data_12.pt', legacySample(12, 77, 96).length)).toBe(77);
	});
});

test('a file that is gone or not to be read is not judged', () => {
	expect(checkFile(join(directory, 'none.pt'), VALUES, new SizeRules()).verdict).toEqual({
		verdict: 'unverifiable',
		reason: 'unreadable',
		words: 'ENOENT',
	});
});

test('a file with holes on the disk is pointed out where only its structure is looked at', () => {
	const bytes = legacySample(6, 2_000, 64, ({layers}) => layers[1]?.fill(0));
	const path = join(directory, 'data_6.pt');
	const fd = openSync(path, 'w');
	const zeros = bytes.indexOf(Buffer.alloc(100_000));
	const [from, to] = [Math.ceil(zeros / 4_096) * 4_096, zeros + 200_000];
	writeSync(fd, bytes, 0, from, 0);
	writeSync(fd, bytes, to, bytes.length - to, to);
	closeSync(fd);
	const notes = (level: Level) => checkFile(path, {...VALUES, level}, new SizeRules()).notes;
	expect(notes('structure')).toEqual(['takes less room on the disk than its size: only crc tells']);
	expect(notes('crc')).toEqual([]);
});

test('a file that changes while it is read is not judged', () => {
	const path = put(join(directory, 'data_5.pt'), legacySample(5, 30));
	const options: CheckOptions = {
		...VALUES,
		get hidden() {
			utimesSync(path, 1e9, 1e9);
			return null;
		},
	};
	expect(checkFile(path, options, new SizeRules()).verdict).toEqual({
		verdict: 'unverifiable',
		reason: 'changing',
		words: 'changed while it was read',
	});
	expect(checkFile(path, options, new SizeRules()).verdict).toEqual({verdict: 'done'});
});
