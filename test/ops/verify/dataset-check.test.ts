import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import type {Level} from '../../../src/ops/verify/verdict.ts';
import {verify} from '../../../src/ops/verify/verify.ts';
import {dataset, legacySample, put} from './support/samples.ts';

let root = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-dataset-'));
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

const tree = (): string => join(root, 'out');
const store = (index: number, tokens: number, change?: Parameters<typeof legacySample>[3]) =>
	put(join(tree(), `data_${index}.pt`), legacySample(index, tokens, 64, change));

async function judge(level: Level) {
	const {files, holes} = await verify([tree()], {
		level,
		dataset: join(root, 'data.jsonl'),
		hidden: null,
		normWeight: null,
		workers: 0,
	});
	const wrong = files.flatMap(({index, verdict}) =>
		verdict.verdict === 'suspect' ? [[index, verdict.reason, verdict.words]] : [],
	);
	return {wrong, holes};
}

test.each(['stat', 'structure', 'crc', 'values'] as const)(
	'%s: another token count than the dataset has',
	async level => {
		put(join(root, 'data.jsonl'), dataset([30, 40, 50, 60]));
		for (const [index, tokens] of [
			[0, 30],
			[1, 39],
			[3, 60],
		] as const)
			store(index, tokens);
		expect(await judge(level)).toEqual({
			wrong: [[1, 'tokens', '39 tokens where the dataset has 40']],
			holes: [[2, 2]],
		});
	},
);

test('other ids of the same length are seen by values alone', async () => {
	put(join(root, 'data.jsonl'), dataset([30, 40]));
	store(0, 30);
	store(1, 40, ({ids}) => ids.writeBigInt64LE(5n, 8));
	expect((await judge('crc')).wrong).toEqual([]);
	expect((await judge('values')).wrong).toEqual([[1, 'ids', "ids are not the dataset's"]]);
});

test('samples may all be cut to one longest length, and to no other', async () => {
	put(join(root, 'data.jsonl'), dataset([90, 80, 20, 70]));
	for (const [index, tokens] of [
		[0, 64],
		[1, 64],
		[2, 20],
		[3, 63],
	] as const)
		store(index, tokens);
	expect((await judge('values')).wrong).toEqual([[3, 'tokens', '63 tokens where the dataset has 70']]);
});

test('a mask that is empty in the dataset, too, is no damage', async () => {
	put(
		join(root, 'data.jsonl'),
		dataset([30, 40], index => Array(index ? 40 : 30).fill(index)),
	);
	store(0, 30, ({mask}) => mask.fill(0));
	store(1, 40, ({mask}) => mask.fill(0));
	expect((await judge('values')).wrong).toEqual([[1, 'mask', 'loss_mask is all zero']]);
});

test('records without tokens are no holes; files beyond the last record belong to another dataset', async () => {
	put(join(root, 'data.jsonl'), dataset([30, 0, 40, 50]));
	store(0, 30);
	store(7, 30);
	expect(await judge('structure')).toEqual({
		wrong: [[7, 'tokens', 'the dataset has only 4 records']],
		holes: [[2, 3]],
	});
});
