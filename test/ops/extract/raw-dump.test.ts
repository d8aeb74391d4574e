import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {readRaw, refusalOf} from '../../../src/ops/extract/raw-dump.ts';
import {fiveStates, packed, type RawOptions, writeRaw} from './support/hook-dumps.ts';

let dumps: string;
beforeEach(() => {
	dumps = mkdtempSync(join(tmpdir(), 'relight-raw-'));
});
afterEach(() => rmSync(dumps, {recursive: true}));

const RID = 'relight-7-0a1b2c3d4e5f';
const ids = Array.from({length: 20}, (_, at) => 100 + at);
const wanted = {rid: RID, rows: ids.length, ids: packed(ids), hiddenSize: HIDDEN_SIZE};
const read = (options: RawOptions = {}) => {
	writeRaw(dumps, RID, ids, options);
	return readRaw(`${dumps}/req_${RID}`, wanted);
};
const inPart = (part: number, change: (meta: Record<string, unknown>) => void) => ({
	chunk: 8,
	meta: (meta: Record<string, unknown>) => {
		if (meta.part === part) change(meta);
	},
});

test.each([20, 8, 1, 19])('parts of %i rows join to the five states of the whole', chunk => {
	expect(read({chunk})).toEqual({states: fiveStates(ids), layers: '2 30 58'});
});

test('a part that is not there yet is no error: so many rows are', () => {
	expect(readRaw(`${dumps}/req_${RID}`, wanted)).toBe(0);
	expect(read({chunk: 8, without: [2]})).toBe(16);
});

test.each([
	[
		'a gap between parts',
		inPart(1, meta => Object.assign(meta, {prefix_len: 9})),
		'part 1 of the dump: it is part 1 from row 9',
	],
	[
		'a part in another place',
		inPart(2, meta => Object.assign(meta, {part: 3})),
		'part 2 of the dump: it is part 3 from row 16',
	],
	['too many rows', inPart(2, meta => Object.assign(meta, {T: 5})), '21 rows where 20 belong'],
	['no rows', inPart(1, meta => Object.assign(meta, {T: 0})), 'part 1 of the dump: it says 0 rows'],
	['another server', inPart(1, meta => Object.assign(meta, {server: {pid: 4712}})), 'another server made it'],
	[
		'other layers',
		inPart(1, meta => Object.assign(meta, {layers: [1, 29, 57]})),
		'its layers are 1,29,57, not 2,30,58',
	],
	[
		'ids of another part',
		inPart(1, meta => Object.assign(meta, {ids_sha256: 'f00'})),
		'the dump is of other token ids',
	],
	[
		'another request',
		inPart(0, meta => Object.assign(meta, {rid: 'relight-8'})),
		'the dump is of relight-8, not of relight-7',
	],
	['another width', inPart(0, meta => Object.assign(meta, {H: 32})), 'its states are bfloat16 [T, 32]'],
	['another type', inPart(0, meta => Object.assign(meta, {dtype: 'float16'})), 'its states are float16 [T, 64]'],
	['another form', inPart(0, meta => Object.assign(meta, {schema: 'relight.dump/2'})), 'its schema is relight.dump/2'],
	[
		'no sums',
		inPart(1, meta => Object.assign(meta, {files: {}})),
		'aux_0.bin has 1024 bytes, says undefined, and 1024 belong',
	],
	[
		'a changed byte',
		{data: (name: string, data: Buffer) => (name === 'final_post' ? data.fill(1, 5, 6) : data)},
		'checksum of final_post.bin is wrong',
	],
	[
		'a cut file',
		{data: (name: string, data: Buffer) => (name === 'aux_1' ? data.subarray(1) : data)},
		'aux_1.bin has 2559 bytes',
	],
] as const)('%s is refused in words', (_, options, words) => {
	expect(() => read(options)).toThrow(words);
});

test('a part behind the last row is refused', () => {
	read({chunk: 10});
	mkdirSync(`${dumps}/req_${RID}/part_2`);
	writeFileSync(`${dumps}/req_${RID}/part_2/meta.json`, '{}');
	expect(() => readRaw(`${dumps}/req_${RID}`, wanted)).toThrow('more rows than the 20 that belong');
});

test("the hook's refusal is told with its detail", () => {
	expect(refusalOf(dumps)).toBeNull();
	writeFileSync(`${dumps}/error.json`, JSON.stringify({reason: 'prefix_len', detail: {prefix_len: 64}}));
	expect(refusalOf(dumps)).toBe('prefix_len {"prefix_len":64}');
});
