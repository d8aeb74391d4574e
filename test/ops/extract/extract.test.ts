import {mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE, sampleFile} from '../../../src/ops/drill/build-data.ts';
import {makeRecords} from '../../../src/ops/drill/records.ts';
import {checkSample} from '../../../src/ops/drill/score-reader.ts';
import {extract} from '../../../src/ops/extract/extract.ts';
import {type ExtractIo, systemIo} from '../../../src/ops/extract/extract-io.ts';
import {doneIndices} from '../../../src/ops/extract/inventory.ts';
import type {ExtractionConfig} from '../../../src/ops/target.ts';
import {type ModelServer, modelServer} from './support/model-server.ts';

const records = makeRecords(12, 1);
let directory: string;
let dumps: string;
let server: ModelServer;
let extraction: ExtractionConfig;
let stop: AbortController;
let lines: string[];

beforeEach(async () => {
	directory = mkdtempSync(join(tmpdir(), 'relight-extract-'));
	dumps = join(directory, 'dumps');
	mkdirSync(dumps);
	server = await modelServer(dumps);
	stop = new AbortController();
	lines = [];
	extraction = {
		dataset: join(directory, 'merged.json'),
		records: records.length,
		tokens: null,
		output: join(directory, 'out'),
		layout: 'legacy',
		groupSize: 5,
		hiddenSize: HIDDEN_SIZE,
		maxTokens: 128,
		overlength: 'truncate',
		concurrency: 1,
		continuity: 0,
		progress: join(directory, 'progress.json'),
		script: null,
		program: [],
		config: null,
		log: join(directory, 'log'),
		confirmMs: 0,
	};
	writeFileSync(extraction.dataset, JSON.stringify(records));
});
afterEach(async () => {
	await server.close();
	rmSync(directory, {recursive: true});
});

const run = (port = server.port, given: Partial<ExtractIo> = {}): Promise<number> =>
	extract(
		{extraction, server: {port, model: '/models/kimi'}, dump: {dir: dumps, limitBytes: null}},
		systemIo({
			canary: false,
			tool: 'test',
			print: line => lines.push(line),
			stop: stop.signal,
			adopt: true,
			serverLimitMs: 5_000,
			dumpLimitMs: 300,
			backOffMs: [10, 20],
			...given,
		}),
	);

const tokens = records.map(record => record.input_ids.length);
const done = (): number[] => [...doneIndices(extraction, tokens)];
const all = records.map((_, index) => index);
const wrong = (): (string | null)[] => records.map((record, index) => checkSample(extraction, index, record));
const progress = (): Record<string, unknown> => JSON.parse(readFileSync(extraction.progress, 'utf8'));
const path = (index: number): string =>
	`${extraction.output}/rows_${index < 5 ? '0-5' : index < 10 ? '5-10' : '10-15'}/data_${index}.pt`;

function store(index: number): void {
	const record = records[index];
	if (!record) throw new Error('no such record');
	mkdirSync(join(path(index), '..'), {recursive: true});
	writeFileSync(path(index), Buffer.concat(sampleFile(index, record)));
}

test('stores every sample, right to the last byte, and removes its own dumps', async () => {
	expect(await run()).toBe(0);
	expect(wrong()).toEqual(records.map(() => null));
	expect(readdirSync(dumps)).toEqual([]);
	expect(readdirSync(extraction.output).sort()).toEqual(['rows_0-5', 'rows_10-15', 'rows_5-10']);
	expect(progress()).toMatchObject({
		schema: 'relight.progress/1',
		state: 'finished',
		pid: process.pid,
		extracted: 12,
		skipped: 0,
		errors: 0,
	});
	// Several are stored at once: one of the last is the last.
	expect(Number(progress().lastIndex)).toBeGreaterThan(7);
	const journal = readFileSync(join(directory, 'extraction-journal.ndjson'), 'utf8')
		.trim()
		.split('\n')
		.map(line => JSON.parse(line))
		.filter(({index}) => index !== undefined)
		// In the order in which they were synced.
		.sort((one, other) => one.index - other.index);
	expect(journal.map(({index, tokens: count}) => [index, count])).toEqual(all.map(index => [index, tokens[index]]));
});

test('fills holes and replaces what is not whole; what is whole is not asked for again', async () => {
	for (const index of [0, 1, 3, 4, 5, 7]) store(index);
	truncateSync(path(4), 500);
	truncateSync(path(7), 0);
	writeFileSync(path(5), readFileSync(path(0)));
	writeFileSync(`${extraction.output}/rows_0-5/.data_2.pt.999.tmp`, 'half');
	expect(await run()).toBe(0);
	expect(wrong()).toEqual(records.map(() => null));
	expect(server.rids.map(rid => Number(rid.split('-')[1]))).toEqual([2, 4, 5, 6, 7, 8, 9, 10, 11]);
	expect(progress()).toMatchObject({skipped: 3, extracted: 9});
	const aside = readdirSync(`${extraction.output}/quarantine`);
	expect(
		aside
			.filter(name => name.endsWith('.bad'))
			.map(name => name.split('.')[0])
			.sort(),
	).toEqual(['data_2', 'data_4', 'data_5', 'data_7']);
	const note = aside.find(name => name.startsWith('data_4') && name.endsWith('.note.json')) ?? '';
	expect(JSON.parse(readFileSync(`${extraction.output}/quarantine/${note}`, 'utf8'))).toMatchObject({
		from: path(4),
		reason: expect.stringContaining('no end record'),
	});
});

test.each([
	'no dump',
	'a row short',
	'cached tokens',
	'other rid',
	'not finite',
	'two dumps',
	'busy',
	'hang up',
] as const)(
	'an answer with %s is never stored: the sample is asked for again under a new name',
	async fault => {
		for (const index of all.slice(1)) store(index);
		server.faults.push(fault);
		expect(await run()).toBe(0);
		expect(wrong()).toEqual(records.map(() => null));
		expect(new Set(server.rids).size).toBe(server.rids.length);
		expect(server.rids.length).toBe(2);
	},
	20_000,
);

test('a foreign dump beside its own confuses nothing and stays', async () => {
	server.faults.push('a stranger too');
	expect(await run()).toBe(0);
	expect(wrong()).toEqual(records.map(() => null));
	expect(readdirSync(dumps)).toEqual(['req_2']);
});

test('a sample the server will not take fails alone, and the status says so', async () => {
	server.faults.push('too long');
	expect(await run()).toBe(1);
	expect(done()).toEqual(all.slice(1));
	expect(progress()).toMatchObject({state: 'finished', errors: 1, extracted: 11});
});

test('five failures in a row end the run', async () => {
	server.faults.push(...Array.from({length: 9}, () => 'too long' as const));
	expect(await run()).toBe(2);
	expect(progress()).toMatchObject({
		state: 'failed',
		errors: 5,
		message: expect.stringMatching(/^5 samples in a row failed, the last because: HTTP 400/),
	});
	expect(server.rids.length).toBe(5);
});

test('waits for a server that is not there yet, and goes on when it comes', async () => {
	const {port} = server;
	await server.close();
	const running = run(port);
	await new Promise(resolve => setTimeout(resolve, 400));
	expect(progress()).toMatchObject({state: 'waiting for server', extracted: 0});
	server = await modelServer(dumps, {port});
	expect(await running).toBe(0);
	expect(done()).toEqual(all);
});

test('stops after the sample in flight when asked, and says so', async () => {
	const running = run();
	while (server.rids.length < 3) await new Promise(resolve => setTimeout(resolve, 1));
	stop.abort();
	expect(await running).toBe(0);
	expect(progress()).toMatchObject({state: 'stopped', errors: 0});
	expect(done()).toEqual(all.slice(0, server.rids.length));
	expect(readdirSync(dumps)).toEqual([]);
});

test('a second writer is refused and leaves the progress of the first alone', async () => {
	const first = run();
	expect(await run()).toBe(4);
	expect(lines.some(line => line.startsWith('another writer holds'))).toBe(true);
	expect(await first).toBe(0);
});

test('samples over the limit are cut or left out, as configured; their size follows', async () => {
	extraction = {...extraction, maxTokens: 20};
	expect(await run()).toBe(0);
	const cut = records.map(record => ({
		input_ids: record.input_ids.slice(0, 20),
		loss_mask: record.loss_mask.slice(0, 20),
	}));
	expect(cut.map((record, index) => checkSample(extraction, index, record))).toEqual(records.map(() => null));
	rmSync(extraction.output, {recursive: true});
	rmSync(join(directory, 'run.json'));
	extraction = {...extraction, overlength: 'filter'};
	expect(await run()).toBe(0);
	expect(done()).toEqual(all.filter(index => (tokens[index] ?? 0) <= 20));
});

test('prints the lines that a follower of the log knows', async () => {
	await run();
	const line =
		/^\s*\[(\d+)\] (\d+) extracted \((\d+) total\), ([\d.]+) samples\/s(?:, ([\d.]+) tok\/s)?(?:, req_time=([\d.]+)s)?, ETA: (\d+) min, errors: (\d+)(?:, ~([\d.]+) GB)?/;
	// Several are stored at once: which of them comes first is not said.
	expect(lines.filter(text => line.test(text)).map(text => line.exec(text)?.slice(2, 4))).toEqual([
		['1', '1'],
		['2', '2'],
		['3', '3'],
		['4', '4'],
		['5', '5'],
		['10', '10'],
	]);
});
