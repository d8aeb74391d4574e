import {mkdirSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {safetensorsTrouble, zipEndTrouble} from '../../../src/ops/formats/end-record.ts';
import {type ExtractionFacts, extraction} from '../../../src/ops/probes/extraction.ts';
import {filesToCheck, holesOf} from '../../../src/ops/probes/inventory-ranges.ts';
import type {ExtractionConfig} from '../../../src/ops/target.ts';
import {contextOf, fixture, look, makeTree} from './support.ts';

const CONFIG: ExtractionConfig = {
	dataset: '/data/merged.json',
	records: 600,
	tokens: null,
	output: '/data/out',
	layout: 'legacy',
	groupSize: 200,
	hiddenSize: 64,
	maxTokens: 8192,
	overlength: 'truncate',
	concurrency: 4,
	progress: '/data/progress.json',
	script: null,
	program: [],
	config: null,
	log: '/data/extraction.log',
	confirmMs: 60_000,
};

/** As torch ends its files: zip64 records between directory and end record. */
function sample(bytes: number, between = 76): Buffer {
	const file = Buffer.alloc(bytes, 1);
	const end = bytes - 22;
	file.fill(0, end);
	file.write('PK\u0005\u0006', end, 'latin1');
	file.writeUInt32LE(100, end + 12);
	file.writeUInt32LE(end - between - 100, end + 16);
	return file;
}

/** Looks until every end record was read. */
async function settle(
	target: {extraction: ExtractionConfig},
	last: ExtractionFacts | null = null,
): Promise<ExtractionFacts> {
	let facts = await look(extraction, contextOf({target, last, hints: {nowMs: Date.now()}}));
	while (facts.inventory?.groups.some(group => group.unchecked > 0))
		facts = await look(extraction, contextOf({target, last: facts, hints: {nowMs: Date.now()}}));
	return facts;
}

const counts = ({inventory}: ExtractionFacts) =>
	inventory && {
		present: inventory.present,
		complete: inventory.complete,
		holes: inventory.holes,
		suspects: inventory.suspects.map(({index, reason}) => [index, reason]),
		temporaries: inventory.temporaries,
		quarantined: inventory.quarantined,
	};

describe('a real output tree', () => {
	it('counts present and complete apart, names holes and suspects, and follows changes', async () => {
		const cut = sample(4000).subarray(0, 3000);
		const zeros = Buffer.concat([sample(4000).subarray(0, 3000), Buffer.alloc(1000)]);
		const tree = makeTree({
			'out/rows_0-200/data_0.pt': sample(4000),
			'out/rows_0-200/data_1.pt': cut,
			'out/rows_0-200/data_3.pt': '',
			'out/rows_0-200/data_4.ckpt': zeros,
			'out/rows_0-200/data_5.pt.tmp': 'x',
			'out/rows_0-200/.data_6.pt.tmp.4120': 'x',
			'out/rows_0-200/notes.txt': 'x',
			'out/rows_200-400/data_200.pt': sample(500, 0),
			'out/.quarantine/data_9.pt': 'x',
			'out/.quarantine/data_9.json': 'x',
			'out/quarantine/data_4.pt.1764500000000.bad': 'x',
			'out/quarantine/data_4.pt.1764500000000.bad.note.json': 'x',
			'out/unrelated/data_77.pt': 'x',
		});
		const target = {extraction: {...CONFIG, output: `${tree.root}/out`}};
		const first = await look(extraction, contextOf({target, hints: {nowMs: Date.now()}}));
		const inventory = first.inventory;
		expect(counts(first)).toEqual({
			present: 5,
			complete: 0,
			holes: [
				[2, 2],
				[5, 199],
			],
			suspects: [[3, 'empty']],
			temporaries: 2,
			quarantined: 2,
		});
		expect(inventory && [inventory.expected, inventory.bytes, inventory.groups.map(group => group.name)]).toEqual([
			600,
			4000 + 3000 + 4000 + 500,
			['rows_0-200', 'rows_200-400'],
		]);
		const second = await settle(target, first);
		expect(counts(second)).toEqual({
			present: 5,
			complete: 2,
			holes: [
				[2, 2],
				[5, 199],
			],
			suspects: [
				[1, 'no end record: cut off, or zeros after a crash'],
				[3, 'empty'],
				[4, 'no end record: cut off, or zeros after a crash'],
			],
			temporaries: 2,
			quarantined: 2,
		});
		expect(second.inventory?.suspects[0]?.path).toBe(`${tree.root}/out/rows_0-200/data_1.pt`);

		const quiet = await settle(target, second);
		expect(quiet.inventory).toBe(second.inventory);

		writeFileSync(`${tree.root}/out/rows_0-200/.data_2.pt.tmp.1`, sample(900));
		renameSync(`${tree.root}/out/rows_0-200/.data_2.pt.tmp.1`, `${tree.root}/out/rows_0-200/data_2.pt`);
		rmSync(`${tree.root}/out/rows_0-200/data_5.pt.tmp`);
		mkdirSync(`${tree.root}/out/rows_400-600`);
		writeFileSync(`${tree.root}/out/rows_400-600/data_400.pt`, sample(700));
		const third = await settle(target, quiet);
		expect(counts(third)).toEqual({
			present: 7,
			complete: 4,
			holes: [
				[5, 199],
				[201, 399],
			],
			suspects: counts(second)?.suspects,
			temporaries: 1,
			quarantined: 2,
		});
		expect(third.inventory?.newestPath).toBe(`${tree.root}/out/rows_400-600/data_400.pt`);
		tree.remove();
	});

	it('lists a directory again whose time went back, and forgets one that is gone', async () => {
		const tree = makeTree({'out/rows_0-200/data_0.pt': sample(400), 'out/rows_200-400/data_200.pt': sample(400)});
		const target = {extraction: {...CONFIG, output: `${tree.root}/out`}};
		const old = new Date('2020-01-01');
		utimesSync(`${tree.root}/out/rows_0-200`, old, old);
		const later = {...(await settle(target)), listedAt: `${Math.floor(Date.now() / 1000) + 60}.0`};
		writeFileSync(`${tree.root}/out/rows_0-200/data_1.pt`, sample(400));
		utimesSync(`${tree.root}/out/rows_0-200`, new Date('2019-01-01'), new Date('2019-01-01'));
		rmSync(`${tree.root}/out/rows_200-400`, {recursive: true});
		const seen = await look(extraction, contextOf({target, last: later, hints: {nowMs: Date.now()}}));
		expect(seen.inventory?.groups.map(({name, modifiedAt, present}) => [name, modifiedAt, present])).toEqual([
			['rows_0-200', 0, 1],
		]);
		const settled = await settle(target, seen);
		expect(counts(settled)).toMatchObject({present: 2, complete: 2});
		tree.remove();
	});

	it('a file that was still being written is looked at again', async () => {
		const tree = makeTree({'out/rows_0-200/data_0.pt': sample(4000).subarray(0, 2000)});
		const target = {extraction: {...CONFIG, output: `${tree.root}/out`}};
		const first = await settle(target);
		expect(counts(first)?.suspects).toEqual([[0, 'no end record: cut off, or zeros after a crash']]);
		writeFileSync(`${tree.root}/out/rows_0-200/data_0.pt`, sample(4000));
		const late = {...first, listedAt: `${Math.floor(Date.now() / 1000) + 60}.0`};
		const second = await look(extraction, contextOf({target, last: late, hints: {nowMs: Date.now()}}));
		expect([counts(second)?.complete, second.inventory?.bytes]).toEqual([1, 4000]);
		truncateSync(`${tree.root}/out/rows_0-200/data_0.pt`, 0);
		tree.remove();
	});

	it('checks 400 end records a look, newest first', async () => {
		const files = Object.fromEntries(
			Array.from({length: 450}, (_, at) => [`out/rows_0-600/data_${at}.pt`, sample(300)]),
		);
		const tree = makeTree(files);
		const target = {extraction: {...CONFIG, output: `${tree.root}/out`}};
		const first = await look(extraction, contextOf({target, hints: {nowMs: Date.now()}}));
		expect(filesToCheck(first.inventory, 0)).toEqual(['n 50 449 rows_0-600/data_ .pt']);
		const second = await look(extraction, contextOf({target, last: first, hints: {nowMs: Date.now()}}));
		expect([first.inventory?.complete, second.inventory?.complete]).toEqual([0, 400]);
		tree.remove();
	});

	it('reads a flat tree of safetensors by their headers', async () => {
		const header = JSON.stringify({a: {dtype: 'BF16', shape: [4], data_offsets: [0, 8]}});
		const file = Buffer.concat([Buffer.alloc(8), Buffer.from(header), Buffer.alloc(8)]);
		file.writeBigUInt64LE(BigInt(header.length));
		const tree = makeTree({'out/hs_0.safetensors': file, 'out/hs_2.safetensors': file.subarray(0, file.length - 1)});
		const target = {extraction: {...CONFIG, layout: 'speculators' as const, output: `${tree.root}/out`}};
		expect(counts(await settle(target))).toEqual({
			present: 2,
			complete: 1,
			holes: [[1, 1]],
			suspects: [[2, 'size is not what its header says']],
			temporaries: 0,
			quarantined: 0,
		});
		tree.remove();
	});

	it('no such directory is another thing than an empty one', async () => {
		const tree = makeTree({'out/x': ''});
		const at = (output: string) => look(extraction, contextOf({target: {extraction: {...CONFIG, output}}}));
		expect((await at(`${tree.root}/nowhere`)).inventory).toBeNull();
		expect((await at(`${tree.root}/out`)).inventory).toMatchObject({present: 0, holes: [], groups: []});
		expect(extraction.script(contextOf())).toBeNull();
		tree.remove();
	});

	it('tells the dump directory, the script, the run and whether it lives', async () => {
		const {readFileSync} = await import('node:fs');
		const row = readFileSync('/proc/self/stat', 'utf8');
		const startTicks = Number(row.slice(row.lastIndexOf(')') + 2).split(' ')[19]);
		const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		const progress = {...JSON.parse(fixture('extraction/progress.json')), pid: process.pid, startTicks, bootId};
		const tree = makeTree({
			'out/rows_0-200/data_0.pt': sample(400),
			'shm/req_a/aux_0.bin': '12345',
			'shm/req_a/meta.json': '{}',
			'shm/req_b/x': '',
			'shm/other/req_c': 'x',
			'progress.json': JSON.stringify(progress, null, 2),
			'extract.py': 'x',
		});
		const script = {source: '', destination: `${tree.root}/extract.py`, sha256: null, mode: '644', argv: []};
		const target = {
			extraction: {...CONFIG, output: `${tree.root}/out`, progress: `${tree.root}/progress.json`, script},
			dump: {dir: `${tree.root}/shm`, limitBytes: null},
		};
		const facts = await look(extraction, contextOf({target}));
		expect(facts.script).toBe('present');
		expect(facts.run).toMatchObject({source: 'progress', state: 'extracting', alive: true, pid: process.pid});
		expect(facts.dumps?.map(({name, bytes}) => [name, bytes]).sort()).toEqual([
			['req_a', 7],
			['req_b', 0],
		]);
		rmSync(`${tree.root}/extract.py`);
		writeFileSync(`${tree.root}/progress.json`, JSON.stringify({...progress, startTicks: 1}));
		const second = await look(extraction, contextOf({target, last: facts}));
		expect([second.script, second.run?.alive]).toEqual(['gone', false]);
		tree.remove();
	});
});

describe('end records', () => {
	const tail = (file: Buffer) => file.subarray(-22).toString('latin1');

	it('knows whole files with and without zip64, and what is not', () => {
		expect(zipEndTrouble(tail(sample(4000)), 4000)).toBeNull();
		expect(zipEndTrouble(tail(sample(4000, 0)), 4000)).toBeNull();
		expect(zipEndTrouble(tail(sample(4000)), 8000)).toBe('end record does not fit the size');
		expect(zipEndTrouble(tail(Buffer.alloc(4000)), 4000)).toBe('no end record: cut off, or zeros after a crash');
		expect(zipEndTrouble('PK', 2)).toBe('too short for an end record');
	});

	it('refuses a safetensors header that promises more than there is', () => {
		expect(safetensorsTrouble('\u00ff\u00ff\u0000\u0000\u0000\u0000\u0000\u0000', 8)).toBe('header is cut off');
		expect(safetensorsTrouble('abc', 3)).toBe('too short for a header');
	});
});

describe('holes', () => {
	it('are ranges below the highest present index', () => {
		const group = (indices: number[]) => ({files: new Map(indices.map(index => [index, {}]))});
		const groups = [group([1, 0, 3]), group([]), group([10, 12])] as unknown as Parameters<typeof holesOf>[0];
		expect(holesOf(groups)).toEqual([
			[2, 2],
			[4, 9],
			[11, 11],
		]);
		expect(holesOf([])).toEqual([]);
	});
});
