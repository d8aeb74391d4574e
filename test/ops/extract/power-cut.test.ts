import {statSync, truncateSync} from 'node:fs';
import {join} from 'node:path';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {checkSample} from '../../../src/ops/drill/score-reader.ts';
import {Dataset} from '../../../src/ops/extract/dataset.ts';
import {samplePath} from '../../../src/ops/extract/inventory.ts';
import {type JournalFacts, readJournal} from '../../../src/ops/extract/journal.ts';
import {readManifest} from '../../../src/ops/extract/manifest.ts';
import {takeStock} from '../../../src/ops/extract/take-stock.ts';
import type {ExtractionConfig} from '../../../src/ops/target.ts';
import {allNull, Bench} from './support/bench.ts';
import {afterPowerCut, LOSSES, recorder} from './support/power.ts';

let bench: Bench;
let dataset: Dataset;
const {calls, files} = recorder();

beforeAll(async () => {
	bench = new Bench(6);
	bench.extraction = {...bench.extraction, groupSize: 2};
	await bench.serve();
	expect(await bench.run({files})).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	dataset = await Dataset.scan(bench.extraction.dataset, bench.extraction);
});
afterAll(() => bench.end());

test('what is replayed had several files under way, and promised several at once', () => {
	const unnamed = new Set<string>();
	let most = 0;
	for (const each of calls) {
		if (each.call === 'open' && each.path.endsWith('.tmp')) unnamed.add(each.path);
		if (each.call === 'rename') unnamed.delete(each.path);
		most = Math.max(most, unnamed.size);
	}
	expect(most).toBeGreaterThan(1);
	const promises = calls.flatMap(each =>
		each.call === 'write' && each.bytes.includes('"stored"') ? [each.bytes.toString().trim().split('\n').length] : [],
	);
	expect(promises.reduce((sum, lines) => sum + lines, 0)).toBe(6);
	expect(Math.max(...promises)).toBeGreaterThan(1);
});

/** The replayed files have other times and inodes than those that were recorded: say that the disk kept them. */
function asRecorded(extraction: ExtractionConfig, facts: JournalFacts, clean: boolean): JournalFacts {
	const marks = new Map(facts.marks);
	for (const [index, mark] of marks) {
		const found = statSync(samplePath(extraction, index), {throwIfNoEntry: false});
		if (found) marks.set(index, {...mark, mtimeMs: found.mtimeMs, inode: found.ino});
	}
	return {...facts, marks, clean};
}

test.each(LOSSES)('the power goes after any call, unsynced bytes $bytes, unsynced names $names', async loss => {
	const root = join(bench.directory, 'replayed');
	const extraction = {...bench.extraction, output: join(root, 'out')};
	const whole = (index: number): boolean => {
		const record = bench.records[index];
		return record !== undefined && checkSample(extraction, index, record) === null;
	};
	let most = 0;
	for (let count = 0; count <= calls.length; count++) {
		afterPowerCut(calls.slice(0, count), loss, bench.directory, root);
		const facts = readJournal(join(root, 'extraction-journal.ndjson'));
		const known = [...facts.marks.keys()];
		expect({count, promised: known.filter(index => !whole(index))}).toEqual({count, promised: []});
		for (const clean of [true, false]) {
			const {ledger} = await takeStock(extraction, dataset, asRecorded(extraction, facts, clean));
			const done = ledger.having('done');
			expect({count, clean, wrong: done.filter(index => !whole(index))}).toEqual({count, clean, wrong: []});
			expect(done.length).toBeGreaterThanOrEqual(known.length);
		}
		if (known.length > 0) expect(readManifest(join(root, 'run.json'))).not.toBeNull();
		most = Math.max(most, known.length);
	}
	expect(most).toBe(6);
	expect(calls.length).toBeGreaterThan(50);
});

test('a suspect is durably away before the journal says so', async () => {
	const other = new Bench(3);
	const recorded = recorder();
	other.store(1);
	truncateSync(other.path(1), 900);
	await other.serve();
	expect(await other.run({files: recorded.files, adopt: true})).toBe(0);
	const moved = recorded.calls.findIndex(each => each.call === 'rename' && each.path === other.path(1));
	const behind = recorded.calls.slice(moved + 1);
	const noted = behind.findIndex(each => each.call === 'write' && each.bytes.includes('"quarantined"'));
	const synced = behind.slice(0, noted).flatMap(each => (each.call === 'sync directory' ? [each.path] : []));
	expect(noted).toBeGreaterThan(0);
	expect(synced).toEqual([`${other.extraction.output}/rows_0-5`, `${other.extraction.output}/quarantine`]);
	await other.end();
});

test('the replay itself can tell: a file whose bytes were not synced is found out', () => {
	const root = join(bench.directory, 'replayed');
	const unsynced = calls.filter(({call}) => call !== 'sync');
	afterPowerCut(unsynced, {bytes: 'torn', names: 'there'}, bench.directory, root);
	const extraction = {...bench.extraction, output: join(root, 'out')};
	expect(
		bench.records.map((record, index) => checkSample(extraction, index, record)).filter(reason => reason === null),
	).toEqual([]);
	truncateSync(join(root, 'extraction-journal.ndjson'), 0);
});
