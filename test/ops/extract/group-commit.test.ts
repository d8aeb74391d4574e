import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {afterEach, beforeEach, expect, test} from 'vitest';
import type {Written} from '../../../src/ops/extract/commit.ts';
import {type FilePort, systemFiles} from '../../../src/ops/extract/file-port.ts';
import {GroupCommit} from '../../../src/ops/extract/group-commit.ts';
import {Journal} from '../../../src/ops/extract/journal.ts';

let directory: string;
/** What was asked of the disk, in order; a sync ends when it is let go. */
let asked: string[];
let hold: ((call: string) => Promise<void>) | null;
let commits: GroupCommit;
let room: boolean[];
let journal: Journal;
let settled: number[];
beforeEach(() => {
	directory = mkdtempSync(join(tmpdir(), 'relight-group-'));
	asked = [];
	settled = [];
	hold = null;
	room = [];
	const call = async (name: string): Promise<void> => {
		asked.push(name);
		await hold?.(name);
	};
	const files: FilePort = {
		...systemFiles,
		settle: () => call('journal'),
		settleDirectory: path => call(path.slice(directory.length)),
	};
	journal = new Journal(files, join(directory, 'journal.ndjson'));
	commits = new GroupCommit(files, journal, async () => room.shift() ?? false);
});
afterEach(() => {
	journal.close();
	rmSync(directory, {recursive: true});
});

const mark = {bytes: 1, mtimeMs: 1, inode: 1};
const lines = (): number[] =>
	readFileSync(join(directory, 'journal.ndjson'), 'utf8')
		.split('\n')
		.filter(Boolean)
		.map(line => JSON.parse(line).index);

/** Puts a file whose bytes are on the disk once `written` resolves. */
function put(index: number, written: Promise<void> = Promise.resolve()): Promise<void> {
	const write = async (): Promise<Written> => {
		await written;
		writeFileSync(`${directory}/.${index}.tmp`, 'x');
		return {temporary: `${directory}/.${index}.tmp`, mark, crc32: 7};
	};
	const done = commits.put(`${directory}/${index}`, write, () => ({index, tokens: 1, ...mark, proof: 'stored', at: 1}));
	return done.then(line => void settled.push(line === null ? -1 : index));
}

function gate(): {readonly opens: Promise<void>; open(): void} {
	let open = (): void => {};
	const opens = new Promise<void>(resolve => {
		open = resolve;
	});
	return {opens, open};
}

test('a file by itself does not wait for others, and counts only when its line is on the disk', async () => {
	const journalSync = gate();
	hold = call => (call === 'journal' ? journalSync.opens : Promise.resolve());
	const done = put(1);
	await sleep(10);
	expect([asked, lines(), settled]).toEqual([['', 'journal'], [1], []]);
	journalSync.open();
	await done;
	expect(settled).toEqual([1]);
});

test('files wait for one that is being written, four at most, and share the syncs', async () => {
	const slow = gate();
	const all = [put(0, slow.opens), put(1), put(2), put(3)];
	await sleep(10);
	expect([asked, settled]).toEqual([[], []]);
	all.push(put(4));
	await sleep(10);
	expect([asked, lines(), settled]).toEqual([
		['', 'journal'],
		[1, 2, 3, 4],
		[1, 2, 3, 4],
	]);
	slow.open();
	await Promise.all(all);
	expect([asked.length, lines()]).toEqual([4, [1, 2, 3, 4, 0]]);
});

test('a write that fails holds nobody up', async () => {
	const slow = gate();
	const failing = put(
		0,
		slow.opens.then(() => Promise.reject(new Error('EIO'))),
	);
	const other = put(1);
	await sleep(10);
	expect(settled).toEqual([]);
	slow.open();
	await expect(failing).rejects.toThrow('EIO');
	await other;
	expect(settled).toEqual([1]);
});

test('a full disk is waited for with the file in place; stopped meanwhile, it is not promised', async () => {
	const full = Object.assign(new Error('full'), {code: 'ENOSPC'});
	let failures = 2;
	hold = async call => {
		if (call === 'journal' && failures-- > 0) throw full;
	};
	room = [true, true];
	await put(1);
	failures = 1;
	await put(2);
	expect([settled, asked.length]).toEqual([[1, -1], 8]);
	expect(readFileSync(`${directory}/2`, 'utf8')).toBe('x');
});
