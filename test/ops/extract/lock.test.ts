import {mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {takeLock, thisWriter, type Writer} from '../../../src/ops/extract/lock.ts';

let directory: string;
let path: string;
let proc: string;
let self: Writer;

beforeEach(() => {
	directory = mkdtempSync(join(tmpdir(), 'relight-lock-'));
	path = join(directory, 'lock');
	proc = join(directory, 'proc');
	mkdirSync(`${proc}/sys/kernel/random`, {recursive: true});
	writeFileSync(`${proc}/sys/kernel/random/boot_id`, 'boot-one\n');
	self = thisWriter(proc);
});
afterEach(() => rmSync(directory, {recursive: true}));

function show(pid: number, startTicks: number): void {
	mkdirSync(`${proc}/${pid}`, {recursive: true});
	writeFileSync(`${proc}/${pid}/stat`, `${pid} (a ) b) S ${'0 '.repeat(18)}${startTicks} 0 0\n`);
}

test('a writer is boot id, pid and start ticks', () => {
	const stat = readFileSync('/proc/self/stat', 'latin1');
	expect(self).toMatchObject({
		bootId: 'boot-one',
		pid: process.pid,
		startTicks: Number(stat.split(') ')[1]?.split(' ')[19]),
	});
});

test('one gets it, leaves nothing else behind, and gives it back', () => {
	const lock = takeLock(path, self, proc, false);
	expect(lock).toMatchObject({taken: true, broken: null});
	expect(readdirSync(directory).sort()).toEqual(['lock', 'proc']);
	if (lock.taken) lock.release();
	expect(readdirSync(directory)).toEqual(['proc']);
});

test('a living owner keeps everybody out, also those who would break a stale lock', () => {
	const owner = {...self, pid: 4242, startTicks: 77};
	show(4242, 77);
	takeLock(path, owner, proc, false);
	expect(takeLock(path, self, proc, true)).toEqual({
		taken: false,
		words: expect.stringContaining('another writer holds'),
	});
});

test.each([
	['its process is gone', () => {}],
	['its pid is somebody else’s now', () => show(4242, 78)],
])('a lock is stale when %s; it is broken only when told so', (_, arrange) => {
	const owner = {...self, pid: 4242, startTicks: 77};
	arrange();
	takeLock(path, owner, proc, false);
	expect(takeLock(path, self, proc, false)).toEqual({
		taken: false,
		words: expect.stringMatching(/stale lock.*pid 4242.*gone/),
	});
	expect(takeLock(path, self, proc, true)).toMatchObject({taken: true, broken: {pid: 4242}});
});

test('a lock of another boot is stale, one of another host is not ours to judge', () => {
	takeLock(path, {...self, pid: 1, bootId: 'boot-zero'}, proc, false);
	expect(takeLock(path, self, proc, true)).toMatchObject({taken: true});
	writeFileSync(path, JSON.stringify({...self, host: 'elsewhere', bootId: 'boot-zero'}));
	expect(takeLock(path, self, proc, true)).toMatchObject({taken: false});
});
