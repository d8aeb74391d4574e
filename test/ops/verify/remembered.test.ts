import {
	appendFileSync,
	mkdtempSync,
	readFileSync,
	renameSync,
	rmSync,
	truncateSync,
	utimesSync,
	writeFileSync,
} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import type {Level} from '../../../src/ops/verify/verdict.ts';
import {verify} from '../../../src/ops/verify/verify.ts';
import {legacySample, put} from './support/samples.ts';

let root = '';
let journal = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-remember-'));
	journal = join(root, '.relight/verified.ndjson');
	for (const index of [0, 1, 2]) put(join(root, `rows_0-2000/data_${index}.pt`), legacySample(index, 20 + index));
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

const run = (level: Level, options: {hidden?: number; stop?: AbortSignal; dataset?: string} = {}) =>
	verify([root], {level, dataset: null, hidden: null, normWeight: null, workers: 0, ...options});
const states = async (level: Level) =>
	(await run(level)).files.map(({path, verdict}) => [path.slice(-9), verdict.verdict]);

test('a second run looks at nothing again and says the same', async () => {
	const first = await run('values');
	const second = await run('values');
	expect([first.remembered, second.remembered]).toEqual([0, 3]);
	expect(second.files).toEqual(first.files);
	expect(readFileSync(journal, 'utf8').trimEnd().split('\n').length).toBe(3);
});

test('a deeper look answers a shallower question, not the other way round', async () => {
	await run('crc');
	expect((await run('structure')).remembered).toBe(3);
	expect((await run('values')).remembered).toBe(0);
	expect((await run('values', {hidden: 64})).remembered).toBe(0);
});

test('a suspect of a deeper look is no suspect of a shallower one', async () => {
	put(
		join(root, 'rows_0-2000/data_1.pt'),
		legacySample(1, 21, 64, ({mask}) => mask.fill(0)),
	);
	expect((await run('values')).files.filter(({verdict}) => verdict.verdict === 'suspect').length).toBe(1);
	expect((await run('crc')).files.filter(({verdict}) => verdict.verdict === 'suspect').length).toBe(0);
});

test('new bytes, a new time or another file under the name are looked at again', async () => {
	await run('crc');
	const path = join(root, 'rows_0-2000/data_1.pt');
	utimesSync(path, 1e9, 1e9);
	expect((await run('crc')).remembered).toBe(2);
	truncateSync(path, 100);
	expect((await states('crc')).sort()).toEqual([
		['data_0.pt', 'done'],
		['data_1.pt', 'suspect'],
		['data_2.pt', 'done'],
	]);
	put(path, legacySample(1, 21));
	utimesSync(path, 1e9, 1e9);
	await run('crc');
	expect((await run('crc')).remembered).toBe(3);
	const other = put(`${path}.new`, legacySample(1, 21));
	utimesSync(other, 1e9, 1e9);
	renameSync(other, path);
	expect((await run('crc')).remembered).toBe(2);
});

test('a torn last line is passed over, and what follows it is not lost', async () => {
	await run('crc');
	const text = readFileSync(journal, 'utf8');
	writeFileSync(journal, text.slice(0, -30));
	expect((await run('crc')).remembered).toBe(2);
	expect((await run('crc')).remembered).toBe(3);
	appendFileSync(journal, 'null\n{}\n{"file":"rows_0-2000/data_0.pt"}\nnonsense\n');
	expect((await run('crc')).remembered).toBe(3);
});

test('a run that is stopped has kept what it saw', async () => {
	const stop = new AbortController();
	let seen = 0;
	await verify(
		[root],
		{level: 'crc', dataset: null, hidden: null, normWeight: null, workers: 0, stop: stop.signal},
		() => ++seen === 2 && stop.abort(),
	);
	expect((await run('crc')).remembered).toBe(2);
});

test('a tree that cannot be written to is looked at all the same, and that is said', async () => {
	writeFileSync(join(root, '.relight'), 'in the way');
	const found = await run('crc');
	expect(found.files.map(({verdict}) => verdict.verdict)).toEqual(['done', 'done', 'done']);
	expect(found.troubles).toHaveLength(1);
});
