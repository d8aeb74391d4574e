import {
	closeSync,
	existsSync,
	mkdirSync,
	openSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	truncateSync,
	utimesSync,
	writeFileSync,
	writeSync,
} from 'node:fs';
import {dirname, join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {manifestPath} from '../../../src/ops/extract/manifest-path.ts';
import type {ExtractionConfig} from '../../../src/ops/target.ts';
import {fileSource} from '../../../src/ops/tensor/source.ts';
import {readTensor, readTorchFile, tensorsOf} from '../../../src/ops/tensor/torch-reader.ts';
import {until} from '../drill/support/shell.ts';
import {Bench} from './support/bench.ts';

let bench: Bench;
beforeEach(async () => {
	bench = new Bench();
	await bench.serve();
});
afterEach(() => bench.end());

const nothingWrong = () => bench.records.map(() => null);
const restart = (): void => {
	bench.server.rids.length = 0;
	bench.lines.length = 0;
};
const flip = (index: number, at: number, ageMs = 0): void => {
	const bytes = readFileSync(bench.path(index));
	bytes[at] = (bytes[at] ?? 0) ^ 0x10;
	writeFileSync(bench.path(index), bytes);
	const time = (Date.now() - ageMs) / 1_000;
	utimesSync(bench.path(index), time, time);
};
const DATA = 2_000;
const HOUR = 3_600_000;

test('a fresh tree gets a manifest of what it is made from, outside the groups', async () => {
	await bench.server.close();
	await bench.serve({info: {model_path: '/models/kimi/', version: '0.5.9'}});
	expect(await bench.run()).toBe(0);
	expect(JSON.parse(readFileSync(bench.file('run.json'), 'utf8'))).toEqual({
		schema: 'relight.run/1',
		createdAt: expect.stringMatching(/^20\d\d-/),
		tool: 'test',
		adopted: null,
		identity: {
			'dataset.sha256': expect.stringMatching(/^[0-9a-f]{64}$/),
			'dataset.records': 12,
			'dataset.order': expect.stringMatching(/^[0-9a-f]{64}$/),
			model: '/models/kimi',
			'server.modelPath': '/models/kimi',
			'server.version': '0.5.9',
			output: 'out',
			layout: 'legacy',
			layers: null,
			keys: 'input_ids: I64 [T]; hidden_states: aux_0 [T, H], aux_1 [T, H], aux_2 [T, H], final [T, H]; loss_mask: I64 [T]',
			norm: 'unknown',
			hiddenSize: 64,
			dtype: 'bf16',
			maxTokens: 128,
			overlength: 'truncate',
			groupSize: 5,
		},
	});
	expect(readdirSync(bench.extraction.output).sort()).toEqual(['rows_0-5', 'rows_10-15', 'rows_5-10']);
});

test('another run is refused, each difference named, and nothing is touched', async () => {
	await bench.run();
	const sum = JSON.parse(readFileSync(bench.file('run.json'), 'utf8')).identity['dataset.sha256'];
	rmSync(bench.path(3));
	restart();
	writeFileSync(bench.extraction.dataset, JSON.stringify([...bench.records].reverse()));
	bench.extraction = {...bench.extraction, maxTokens: 64, overlength: 'filter'};
	expect(await bench.run()).toBe(4);
	const words = bench.lines.at(-1) ?? '';
	expect(words).toMatch(/^Refused: .*run\.json is of another run: /);
	expect(words).toContain(`dataset.sha256: ${sum}, now `);
	expect(words).toContain('dataset.order: ');
	expect(words).toContain('maxTokens: 128, now 64; overlength: truncate, now filter');
	expect(words).not.toContain('groupSize');
	expect(bench.progress()).toMatchObject({state: 'failed', message: words.slice('Refused: '.length)});
	expect(bench.server.rids).toEqual([]);
	expect(readdirSync(bench.extraction.output).sort()).toEqual(['rows_0-5', 'rows_10-15', 'rows_5-10']);
	expect(bench.ndjson('extraction-events.ndjson').at(-1)).toMatchObject({event: 'ended', state: 'failed', code: 4});
});

test.each([
	['another model', {model_path: '/models/other'}, 'server.modelPath: /models/kimi, now /models/other'],
	['another version', {model_path: '/models/kimi', version: '0.5.14'}, 'server.version: 0.5.9, now 0.5.14'],
])('a server with %s is refused before it is asked for anything', async (_, info, words) => {
	await bench.server.close();
	await bench.serve({info: {model_path: '/models/kimi', version: '0.5.9'}});
	await bench.run();
	rmSync(bench.path(0));
	await bench.server.close();
	await bench.serve({info});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain(words);
	expect(bench.server.rids).toEqual([]);
});

test('a server with another model than the configured one is refused for a fresh tree too', async () => {
	await bench.server.close();
	await bench.serve({info: {model_path: '/models/other'}});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toBe('Refused: the server has loaded /models/other, the configuration names /models/kimi');
});

test('a tree without a manifest is refused; --adopt looks at every file and takes it over', async () => {
	for (let index = 0; index < 8; index++) bench.store(index, (12 - index) * HOUR);
	truncateSync(bench.path(2), 900);
	flip(4, 40, 8 * HOUR);
	writeFileSync(bench.path(5), readFileSync(bench.path(5)).fill(7, 700, 720));
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/holds 8 sample files and there is no .*run\.json: --adopt looks at all of them/);
	expect(existsSync(bench.file('run.json'))).toBe(false);
	expect(bench.server.rids).toEqual([]);
	expect(await bench.run({adopt: true})).toBe(0);
	expect(bench.wrong()).toEqual(nothingWrong());
	expect(bench.asked()).toEqual([2, 4, 5, 8, 9, 10, 11]);
	expect(JSON.parse(readFileSync(bench.file('run.json'), 'utf8')).adopted).toMatchObject({
		files: 5,
		proof: expect.stringContaining('structure of all'),
	});
	expect(bench.events()).toContain('adopted');
	restart();
	expect(await bench.run()).toBe(0);
	expect(bench.server.rids).toEqual([]);
});

test.each<[string, Partial<ExtractionConfig>, RegExp]>([
	['more records', {records: 11}, /: 12 records where 11 are expected/],
	['fewer', {records: 13}, /: 12 records where 13 are expected/],
	['another sum', {sha256: 'ab'.repeat(32)}, /has sha256 [0-9a-f]{64} where (ab){32} is expected/],
])('a dataset with %s than the configuration says is refused before anything is written', async (_, change, words) => {
	bench.extraction = {...bench.extraction, ...change};
	expect(await bench.run()).not.toBe(0);
	expect(bench.lines.at(-1)).toMatch(words);
	expect([bench.server.rids, existsSync(manifestPath(bench.extraction.output))]).toEqual([[], false]);
});

test('files of another dataset are not adopted, however whole they are', async () => {
	for (let index = 0; index < 12; index++) bench.store(index, HOUR * 9);
	const others = bench.records.map(record => ({
		input_ids: [...record.input_ids].reverse(),
		loss_mask: record.loss_mask,
	}));
	bench.extraction = {...bench.extraction, records: 6};
	writeFileSync(bench.extraction.dataset, JSON.stringify(others.slice(0, 6)));
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/data_\d+\.pt lies beyond the 6 records of/);
	bench.extraction = {...bench.extraction, records: 12};
	writeFileSync(
		bench.extraction.dataset,
		JSON.stringify(bench.records.map(record => ({input_ids: record.input_ids.slice(1)}))),
	);
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(
		/12 of 12 files in .* are whole and of other records \(.*input_ids is I64 \d+ where I64 \d+ belongs\): not a tree of this dataset/,
	);
	bench.extraction = {...bench.extraction, groupSize: 4};
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/does not lie where groups of 4 put it/);
	bench.extraction = {...bench.extraction, groupSize: 5};
	// Same sizes, other ids: only a look inside tells.
	writeFileSync(bench.extraction.dataset, JSON.stringify(others));
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toContain('data_11.pt: its token ids are not those of this record)');
	expect(existsSync(bench.file('run.json'))).toBe(false);
	expect(existsSync(`${bench.extraction.output}/quarantine`)).toBe(false);
});

test('a file is done because the journal knows exactly this file; one that was touched is looked into', async () => {
	await bench.run();
	restart();
	const kept = readFileSync(bench.path(1));
	writeFileSync(bench.path(1), kept);
	flip(7, 700);
	expect(await bench.run()).toBe(0);
	const verified = bench.ndjson('extraction-events.ndjson').findLast(({event}) => event === 'verified');
	expect(verified).toMatchObject({clean: true, looked: 2, full: 0});
	expect(bench.asked()).toEqual([7]);
	expect(bench.wrong()).toEqual(nothingWrong());
});

test('after an unclean end the last hour is read in full, newest first: a page that never came to the disk is found', async () => {
	await bench.run();
	const journal = readFileSync(bench.file('extraction-journal.ndjson'), 'utf8').trimEnd().split('\n');
	expect(JSON.parse(journal.at(-1) ?? '')).toMatchObject({run: 'ended', state: 'finished'});
	writeFileSync(bench.file('extraction-journal.ndjson'), `${journal.slice(0, -1).join('\n')}\n{"index":11,"byt`);
	// The bytes change, and size, time and inode do not.
	const {mtimeMs, atimeMs} = statSync(bench.path(9));
	const bytes = readFileSync(bench.path(9)).fill(0, DATA, DATA + 500);
	const fd = openSync(bench.path(9), 'r+');
	writeSync(fd, bytes, 0, bytes.length, 0);
	closeSync(fd);
	utimesSync(bench.path(9), atimeMs / 1_000, mtimeMs / 1_000);
	restart();
	expect(await bench.run()).toBe(0);
	expect(bench.asked()).toEqual([9]);
	expect(bench.wrong()).toEqual(nothingWrong());
	expect(bench.ndjson('extraction-events.ndjson').findLast(({event}) => event === 'verified')).toMatchObject({
		clean: false,
		full: 12,
		standings: '11 done, 1 suspect',
	});
	expect(bench.lines.some(line => /^ {2}\[9\] not whole \(checksum of data\/\d is wrong\), moved to /.test(line))).toBe(
		true,
	);
});

test('what was found wanting stays so until it is replaced, also when a clean end comes between', async () => {
	for (let index = 0; index < 6; index++) bench.store(index);
	flip(3, DATA);
	const {port} = bench.server;
	await bench.server.close();
	const running = bench.run({adopt: true});
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	bench.stop.abort();
	expect(await running).toBe(0);
	expect(bench.ndjson('extraction-journal.ndjson').at(-1)).toMatchObject({run: 'ended', state: 'stopped'});
	await bench.serve({port});
	expect(await bench.run({stop: new AbortController().signal})).toBe(0);
	expect(bench.asked()).toEqual([3, 6, 7, 8, 9, 10, 11]);
	expect(bench.wrong()).toEqual(nothingWrong());
});

test('a refused run in between does not make an unclean end clean', async () => {
	await bench.run();
	const journal = readFileSync(bench.file('extraction-journal.ndjson'), 'utf8').trimEnd().split('\n');
	writeFileSync(bench.file('extraction-journal.ndjson'), `${journal.slice(0, -1).join('\n')}\n`);
	const {extraction} = bench;
	bench.extraction = {...extraction, maxTokens: 64};
	expect(await bench.run()).toBe(4);
	bench.extraction = extraction;
	expect(await bench.run({stop: AbortSignal.abort()})).toBe(0);
	expect(await bench.run()).toBe(0);
	expect(bench.ndjson('extraction-events.ndjson').findLast(({event}) => event === 'verified')).toMatchObject({
		clean: false,
		full: 12,
	});
});

test('what lies more than an hour before the newest file is not read in full', async () => {
	for (let index = 0; index < 6; index++) bench.store(index, (6 - index) * 0.9 * HOUR);
	await bench.run({adopt: true});
	expect(bench.ndjson('extraction-events.ndjson').find(({event}) => event === 'verified')).toMatchObject({
		looked: 6,
		full: 2,
	});
});

test('what failed comes last in the next run, once, and is counted on', async () => {
	bench.server.faults.push(...Array.from({length: 3}, () => 'no dump' as const));
	expect(await bench.run()).toBe(1);
	expect(bench.lines).toContainEqual(
		expect.stringMatching(/^ {2}\[0\] failed 1 times: no dump with \d+ rows appeared/),
	);
	expect(bench.progress()).toMatchObject({state: 'finished', errors: 1, message: '1 samples failed'});
	expect(bench.ndjson('extraction-journal.ndjson').find(entry => 'failed' in entry)).toMatchObject({
		index: 0,
		times: 1,
	});
	rmSync(bench.path(6));
	restart();
	bench.server.faults.push(...Array.from({length: 3}, () => 'too long' as const));
	bench.extraction = {...bench.extraction, continuity: 0};
	expect(await bench.run()).toBe(1);
	expect(bench.asked()).toEqual([6, 0]);
	expect(
		bench.ndjson('extraction-journal.ndjson').findLast(entry => 'failed' in entry && entry.index === 0),
	).toMatchObject({times: 2});
	restart();
	bench.server.faults.length = 0;
	expect(await bench.run()).toBe(0);
	expect(bench.wrong()).toEqual(nothingWrong());
});

test('a sample that the server will not take is asked for once', async () => {
	bench.server.faults.push('too long');
	expect(await bench.run()).toBe(1);
	expect(bench.asked().filter(index => index === 0)).toEqual([0]);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toContain('HTTP 400');
});

test('filtered samples keep their index and are never asked for', async () => {
	bench.extraction = {...bench.extraction, maxTokens: 20, overlength: 'filter'};
	expect(await bench.run()).toBe(0);
	const short = bench.records.flatMap(({input_ids: ids}, index) => (ids.length <= 20 ? [index] : []));
	expect(bench.asked()).toEqual(short);
	expect(bench.lines).toContainEqual(`0 of ${short.length} done, ${short.length} to extract`);
});

test('a file of a newer torch, larger by some entries, is as good as one of ours', async () => {
	const fixture = join(import.meta.dirname, '../../fixtures/pt/good-torch26-layout-list.pt');
	const fd = openSync(fixture, 'r');
	const source = fileSource(fd);
	const file = readTorchFile(source);
	const tensor = tensorsOf(file.tree).find(([name]) => name === 'input_ids')?.[1];
	if (!tensor) throw new Error('the fixture has no ids');
	const {data} = readTensor(source, file, tensor);
	closeSync(fd);
	const ids = Array.from({length: data.length / 8}, (_, at) => Number(data.readBigInt64LE(at * 8)));
	bench.extraction = {...bench.extraction, records: 1};
	writeFileSync(bench.extraction.dataset, JSON.stringify([{input_ids: ids}]));
	mkdirSync(dirname(bench.path(0)), {recursive: true});
	writeFileSync(bench.path(0), readFileSync(fixture));
	expect(await bench.run({adopt: true})).toBe(0);
	expect(await bench.run()).toBe(0);
	expect(bench.server.rids).toEqual([]);
	expect(bench.lines).toContain('1 of 1 done, 0 to extract');
});
