import {chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {sampleIndex} from '../../../src/ops/verify/names.ts';
import {
	findFiles,
	firstIndex,
	holesIn,
	MissingPath,
	treeOf,
	UnreadableDirectory,
} from '../../../src/ops/verify/tree.ts';
import {put} from './support/samples.ts';

let root = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-tree-'));
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

test('an index is read off names that samples have, and off no other', () => {
	const names = [
		'data_7.pt',
		'data_08.ckpt',
		'hs_9.safetensors',
		'data_1.ckpt.gz',
		'data_7.safetensors',
		'xdata_7.pt',
		'data_7.pt.tmp',
		'data_.pt',
		'data_1234567890123456.pt',
		'data_123456789012345.pt',
		'hs_7.pt',
		'data_7pt',
	];
	const none = [null, null, null, null, null];
	expect(names.map(sampleIndex)).toEqual([7, 8, 9, 1, ...none, 123456789012345, null, null]);
});

test('newest first; temporaries, quarantine and what the tools keep are passed over', () => {
	for (const [name, age] of [
		['rows_0-2000/data_0.pt', 300],
		['rows_0-2000/data_1.pt', 100],
		['vocab.pt', 200],
	] as const) {
		utimesSync(put(join(root, name), 'x'), 1e9 - age, 1e9 - age);
	}
	for (const name of [
		'.data_2.pt.77.tmp',
		'rows_0-2000/.data_3.pt',
		'notes.txt',
		'quarantine/data_4.pt',
		'.relight/data_5.pt',
		'.staging/data_6.pt',
	])
		put(join(root, name), 'x');
	expect(findFiles([root]).files.map(({path}) => path.slice(root.length + 1))).toEqual([
		'rows_0-2000/data_1.pt',
		'vocab.pt',
		'rows_0-2000/data_0.pt',
	]);
});

test('a file given twice is one file; a group belongs to the tree above it', () => {
	const path = put(join(root, 'rows_0-2000/data_0.pt'), 'x');
	const {files} = findFiles([path, join(root, 'rows_0-2000'), root]);
	expect(files.map(({path: each, tree}) => [each, tree])).toEqual([[path, root]]);
	expect(treeOf(join(root, 'rows_0-2000'))).toBe(root);
});

test('holes are runs with both ends, up to the last file or the last record', () => {
	const present = new Set([0, 1, 4, 5, 9, 11]);
	expect(holesIn(present, 0, null)).toEqual([
		[2, 3],
		[6, 8],
		[10, 10],
	]);
	expect(holesIn(present, 6, 14)).toEqual([
		[6, 8],
		[10, 10],
		[12, 13],
	]);
	expect(holesIn(new Set(), 0, null)).toEqual([]);
	expect(holesIn(new Set(), 0, 3)).toEqual([[0, 2]]);
	expect(firstIndex([join(root, 'rows_4000-6000'), join(root, 'rows_2000-4000')])).toBe(2_000);
	expect(firstIndex([root])).toBe(0);
});

test('what is not there and what cannot be read are two different things', () => {
	expect(() => findFiles([join(root, 'none')])).toThrow(MissingPath);
	mkdirSync(join(root, 'locked'));
	chmodSync(join(root, 'locked'), 0);
	chmodSync(root, 0o755);
	const {geteuid, seteuid} = process;
	const asRoot = geteuid?.() === 0;
	if (asRoot) seteuid?.(65_534);
	try {
		expect(() => findFiles([root])).toThrow(UnreadableDirectory);
		expect(() => findFiles([root])).toThrow('cannot be read (EACCES)');
	} finally {
		if (asRoot) seteuid?.(0);
	}
});
