import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
import {afterAll, expect, test} from 'vitest';
import {DatasetError, readSamples, type Sample} from '../../../src/ops/extract/dataset.ts';

const directory = mkdtempSync(join(tmpdir(), 'relight-dataset-'));
afterAll(() => rmSync(directory, {recursive: true}));

async function read(text: string | Buffer, name = 'merged.json'): Promise<Sample[]> {
	const path = join(directory, name);
	writeFileSync(path, text);
	const samples: Sample[] = [];
	for await (const sample of readSamples(path)) samples.push(sample);
	return samples;
}

const TWO: readonly Sample[] = [
	{index: 0, inputIds: [1, 2, 3], lossMask: [0, 1, 1]},
	{index: 1, inputIds: [4], lossMask: [1]},
];
const ARRAY = '[{"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1], "note": "a ] } \\" \\\\"},\n {"input_ids": [4]}]';

test('an array of objects and one object per line read the same', async () => {
	expect(await read(ARRAY)).toEqual(TWO);
	expect(await read('{"input_ids":[1,2,3],"loss_mask":[0,1,1]}\n{"input_ids":[4]}\n')).toEqual(TWO);
	expect(await read('{"input_ids":[1,2,3],"loss_mask":[0,1,1]}\r\n{"input_ids":[4]}')).toEqual(TWO);
	expect(await read(gzipSync(ARRAY), 'merged.json.gz')).toEqual(TWO);
});

test('an empty array and an empty file hold no sample', async () => {
	expect(await read('[]')).toEqual([]);
	expect(await read('')).toEqual([]);
});

test('records that lie across the pieces of a large file come back whole', async () => {
	const records = Array.from({length: 3_000}, (_, at) => ({
		input_ids: Array.from({length: 200}, (_each, n) => at + n),
	}));
	const samples = await read(JSON.stringify(records));
	expect(samples.length).toBe(3_000);
	expect(
		samples.every(
			({index, inputIds}) => inputIds.length === 200 && inputIds[0] === index && inputIds[199] === index + 199,
		),
	).toBe(true);
});

test.each([
	['a file that ends inside the data', '[{"input_ids": [1, 2'],
	['an array without its end', '[{"input_ids": [1]}'],
	['ids that are not whole numbers', '[{"input_ids": [1.5]}]'],
	['no ids', '[{"text": "x"}]'],
	['a mask of another length', '[{"input_ids": [1, 2], "loss_mask": [1]}]'],
	['something else', '<!doctype html>'],
	['numbers', '[1, 2]'],
])('%s is refused', async (_, text) => {
	await expect(read(text)).rejects.toThrow(DatasetError);
});
