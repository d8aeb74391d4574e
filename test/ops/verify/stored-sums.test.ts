import {mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {crc32} from 'node:zlib';
import {afterEach, beforeEach, expect, test} from 'vitest';
import type {Level} from '../../../src/ops/verify/verdict.ts';
import {verify} from '../../../src/ops/verify/verify.ts';
import {put, safetensorsSample} from './support/samples.ts';

let root = '';
let tree = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-sums-'));
	tree = join(root, 'out');
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

const path = (index: number): string => join(tree, `hs_${index}.safetensors`);

/** A sample, and the line that its extractor wrote when it had stored these bytes. */
function stored(index: number, bytes = safetensorsSample(index, 40)): void {
	put(path(index), bytes);
	// So that a test can set it again: by hand, a time has no fractions.
	utimesSync(path(index), 1_000, 1_000);
	const {size, mtimeMs, ino} = statSync(path(index));
	const mark = {bytes: size, mtimeMs, inode: ino, crc32: crc32(bytes).toString(16).padStart(8, '0')};
	const line = {index, tokens: 40, proof: 'stored', ...mark, at: 1};
	writeFileSync(join(root, 'extraction-journal.ndjson'), `${JSON.stringify(line)}\n`, {flag: 'a'});
}

/** Changes one bit of the data. */
function flip(index: number): void {
	const bytes = readFileSync(path(index));
	bytes.writeUInt8((bytes[bytes.length - 1_000] ?? 0) ^ 1, bytes.length - 1_000);
	writeFileSync(path(index), bytes);
}

async function verdicts(level: Level) {
	const {files} = await verify([tree], {level, dataset: null, hidden: null, normWeight: null, workers: 0});
	return Object.fromEntries(files.map(({index, verdict}) => [index, verdict]));
}

test('a flipped bit of a file without checksums is found by the sum in the journal, at crc and values alone', async () => {
	for (const index of [0, 1]) stored(index);
	flip(1);
	utimesSync(path(1), 1_000, 1_000);
	const wrong = {
		verdict: 'suspect',
		reason: 'checksum',
		words: 'its bytes are not the ones that were stored',
		layer: null,
	};
	expect(await verdicts('structure')).toEqual({0: {verdict: 'done'}, 1: {verdict: 'done'}});
	expect(await verdicts('crc')).toEqual({0: {verdict: 'done'}, 1: wrong});
	expect(await verdicts('values')).toEqual({0: {verdict: 'done'}, 1: wrong});
});

test('a copy with its own time is right when it has the sum, and cannot be told when it has not', async () => {
	for (const index of [0, 1]) stored(index);
	flip(1);
	for (const index of [0, 1]) utimesSync(path(index), 5, 5);
	expect(await verdicts('crc')).toEqual({
		0: {verdict: 'done'},
		1: {
			verdict: 'unverifiable',
			reason: 'no checksums',
			words: 'its sum is not that of the file that was stored',
		},
	});
});

test('a file of another size, or without a line, is judged by itself', async () => {
	stored(0);
	put(path(0), safetensorsSample(0, 41));
	put(path(1), safetensorsSample(1, 40));
	expect(await verdicts('crc')).toEqual({0: {verdict: 'done'}, 1: {verdict: 'done'}});
});
