import {appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {systemFiles} from '../../../src/ops/extract/file-port.ts';
import {Journal, readJournal} from '../../../src/ops/extract/journal.ts';
import {Ledger} from '../../../src/ops/extract/ledger.ts';

let directory: string;
let path: string;
beforeEach(() => {
	directory = mkdtempSync(join(tmpdir(), 'relight-journal-'));
	path = join(directory, 'journal.ndjson');
});
afterEach(() => rmSync(directory, {recursive: true}));

const stored = (index: number, bytes: number) =>
	({index, tokens: 3, bytes, mtimeMs: 1_000.25, inode: 7, proof: 'stored', at: 1}) as const;

test('the last line of an index counts; torn and foreign lines say nothing', () => {
	const journal = new Journal(systemFiles, path);
	journal.add({run: 'started', pid: 1, bootId: 'b', tool: 't', at: 1}, stored(4, 10), stored(5, 20));
	journal.add({index: 5, quarantined: '/x', reason: 'cut', at: 2}, {index: 6, failed: 'NaN', times: 2, at: 3});
	journal.add({index: 4, failed: 'later', times: 1, at: 4}, stored(4, 11));
	const mark = {bytes: 5, mtimeMs: 1, inode: 2};
	journal.add(stored(7, 5), {...mark, index: 7, suspect: 'checksum', at: 5}, stored(8, 5));
	journal.add(
		{...mark, index: 8, suspect: 'checksum', at: 6},
		{index: 8, quarantined: '/y', reason: 'checksum', at: 7},
	);
	appendFileSync(path, 'not json\n[1]\n{"index":9,"bytes":1');
	journal.close();
	expect(readJournal(path)).toEqual({
		marks: new Map([[4, {bytes: 11, mtimeMs: 1_000.25, inode: 7, proof: 'stored'}]]),
		suspects: new Map([[7, {...mark, reason: 'checksum'}]]),
		failures: new Map([[6, {times: 2, reason: 'NaN'}]]),
		clean: false,
	});
});

test('a torn last line of a dead writer does not swallow the next one', () => {
	writeFileSync(path, '{"index":1,"by');
	const journal = new Journal(systemFiles, path);
	journal.add(stored(2, 10));
	journal.add({run: 'ended', state: 'finished', at: 1});
	journal.close();
	expect(readFileSync(path, 'utf8').split('\n')[1]).toBe(JSON.stringify(stored(2, 10)));
	expect(readJournal(path)).toMatchObject({
		clean: true,
		marks: new Map([[2, {bytes: 10, mtimeMs: 1_000.25, inode: 7, proof: 'stored'}]]),
	});
});

test.each([
	['finished', true],
	['stopped', true],
	['refused', true],
	['failed', false],
])('a run that ended as %s was clean: %s', (state, clean) => {
	const journal = new Journal(systemFiles, path);
	journal.add({run: 'started', pid: 1, bootId: 'b', tool: 't', at: 1}, {run: 'ended', state, at: 2});
	expect(readJournal(path).clean).toBe(clean);
	journal.add({run: 'started', pid: 1, bootId: 'b', tool: 't', at: 3});
	expect(readJournal(path).clean).toBe(false);
	journal.close();
});

test('the ledger counts each index once, and what failed waits for the rest', () => {
	const ledger = new Ledger();
	ledger.set(0, {state: 'absent'});
	ledger.set(1, {state: 'done'});
	ledger.set(2, {state: 'failed', times: 2, reason: 'NaN'});
	ledger.set(3, {state: 'suspect', reason: 'cut'});
	ledger.set(4, {state: 'filtered'});
	ledger.set(0, {state: 'in-flight'});
	expect(ledger.words()).toBe('1 done, 1 failed, 1 suspect, 1 filtered, 1 in-flight');
	expect(ledger.toDo()).toEqual({fresh: [0, 3], failed: [2]});
	expect([ledger.get(9), ledger.count('absent'), ledger.having('filtered')]).toEqual([{state: 'absent'}, 0, [4]]);
});
