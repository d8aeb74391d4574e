import {mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {type FilePort, systemFiles} from '../../../src/ops/extract/file-port.ts';
import {until} from '../drill/support/shell.ts';
import {allNull, Bench} from './support/bench.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

const failing = (code: string): Error => Object.assign(new Error(`${code}: as arranged`), {code});
const temporaries = () =>
	readdirSync(bench.extraction.output, {recursive: true, encoding: 'utf8'}).filter(name => name.endsWith('.tmp'));

test('a full dump directory is waited for, and the run goes on when there is room', async () => {
	bench.dumpLimitBytes = 600_000;
	mkdirSync(`${bench.dumps}/req_900`);
	writeFileSync(`${bench.dumps}/req_900/aux_0.pt`, Buffer.alloc(599_000));
	await bench.serve();
	const running = bench.run();
	await until(
		() => bench.lines,
		lines => lines.some(line => line.startsWith('Waiting for room: ')),
	);
	expect(bench.progress().message).toMatch(/^waiting for room: 0\.6 MB lie in .*dumps of at most 0\.6 MB$/);
	expect(bench.server.rids).toEqual([]);
	rmSync(`${bench.dumps}/req_900`, {recursive: true});
	expect(await running).toBe(0);
	expect(
		bench.lines.filter(line => line.startsWith('Waiting for room: ') || line === 'There is room again').length,
	).toBe(2);
});

test('below the free-space floor nothing is asked for; above it the run goes on by itself', async () => {
	let free = 65e6;
	const files: FilePort = {...systemFiles, freeBytes: path => (path === bench.extraction.output ? free : 1e12)};
	bench.extraction = {...bench.extraction, keepFreeBytes: 65e6};
	await bench.serve();
	const running = bench.run({files});
	await until(
		() => bench.lines,
		lines =>
			lines.some(line =>
				/^Waiting for room: 65\.0 MB are free on the disk of .*, 65\.0 MB are to stay free$/.test(line),
			),
	);
	await sleep(100);
	expect(bench.server.rids).toEqual([]);
	free = 66e6;
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
});

test('a disk that is full all the same costs no sample: half a file is taken back, the same states are stored later', async () => {
	let full = 3;
	let torn = 0;
	const files: FilePort = {
		...systemFiles,
		async fill(fd, bytes) {
			if (full === 0 || bytes.length < 5_000) return systemFiles.fill(fd, bytes);
			// As a full disk does: a short write first, the error after.
			if (torn++ % 2 === 0) return systemFiles.fill(fd, bytes.subarray(0, 10));
			full--;
			throw failing('ENOSPC');
		},
	};
	await bench.serve();
	expect(await bench.run({files})).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.server.rids.length).toBe(12);
	expect(temporaries()).toEqual([]);
	expect(bench.lines).toContainEqual(expect.stringContaining('Waiting for room: the disk is full (ENOSPC'));
});

test('a journal that finds no room is written later; its torn line stands alone', async () => {
	let fail = true;
	const files: FilePort = {
		...systemFiles,
		write(fd, pieces) {
			const text = Buffer.concat(pieces);
			const at = text.indexOf('{"index":4,');
			if (!fail || at < 0) return systemFiles.write(fd, pieces);
			fail = false;
			systemFiles.write(fd, [text.subarray(0, at + 20)]);
			throw failing('ENOSPC');
		},
	};
	await bench.serve();
	expect(await bench.run({files})).toBe(0);
	const lines = readFileSync(bench.file('extraction-journal.ndjson'), 'utf8').split('\n');
	expect(lines.filter(line => line.startsWith('{"index":4,')).length).toBe(2);
	bench.server.rids.length = 0;
	expect(await bench.run()).toBe(0);
	expect(bench.server.rids).toEqual([]);
});

test.each([
	['EIO', 'settle'],
	['EIO', 'fill'],
	['EROFS', 'create'],
	['EIO', 'rename'],
	['EIO', 'close'],
	['EIO', 'settleDirectory'],
] as const)('%s at %s ends the run in words; the sample is not counted and comes back', async (code, call) => {
	let calls = 0;
	const files: FilePort = {
		...systemFiles,
		[call](...given: [never, never]) {
			const own = call !== 'settle' || systemFiles.mark(given[0]).bytes > 5_000;
			if (own && ++calls === (call === 'settleDirectory' ? 2 : 5)) throw failing(code);
			return (systemFiles[call] as (...each: [never, never]) => never)(...given);
		},
	};
	await bench.serve();
	expect(await bench.run({files})).toBe(2);
	expect(bench.lines.at(-1)).toBe(`Failed: ${code}: as arranged`);
	const counted = bench.ndjson('extraction-journal.ndjson').filter(({proof}) => proof === 'stored').length;
	expect(counted).toBe(bench.progress().extracted);
	expect(counted).toBeLessThan(12);
	expect(bench.wrong().filter(reason => reason === null).length).toBeGreaterThan(0);
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(temporaries()).toEqual([]);
});
