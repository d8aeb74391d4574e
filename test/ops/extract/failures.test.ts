import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {until} from '../drill/support/shell.ts';
import {allNull, Bench} from './support/bench.ts';
import {writeRaw} from './support/hook-dumps.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
	bench.extraction = {...bench.extraction, concurrency: 4};
});
afterEach(() => bench.end());

const rightFiles = (): number => bench.wrong().filter(reason => reason === null).length;
const failedWords = (): string => bench.lines.find(line => / failed: /.test(line)) ?? '';

test('the server dies with several samples in flight and comes back: nothing is lost, nothing is stored twice', async () => {
	let served = 0;
	await bench.serveHook({prefillMs: 20, served: () => ++served === 4 && void bench.server.close()});
	const running = bench.run();
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	const {port} = bench.server;
	await bench.serveHook({port});
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	const lines = bench.ndjson('extraction-journal.ndjson').filter(entry => 'proof' in entry);
	expect(lines.length).toBe(12);
});

test('a server that hangs with several in flight is waited for, and all of them are asked for again', async () => {
	await bench.serveHook();
	bench.server.faults.push('hang');
	const running = bench.run({answerLimitMs: 300});
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	bench.server.hang(false);
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
}, 20_000);

test('a server that comes back with another kind of dumps is refused, and what is stored stays', async () => {
	let served = 0;
	await bench.serveHook({served: () => ++served === 4 && void bench.server.close()});
	const running = bench.run();
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	const {port} = bench.server;
	await bench.serveStaging({layout: 'legacy', final: 'pre'}, {port});
	expect(await running).toBe(4);
	expect(bench.lines.at(-1)).toBe('Refused: the server came back with another kind of dumps: start the run again');
	const stored = rightFiles();
	expect(stored).toBeGreaterThan(0);
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
});

test.each([
	['dump', () => bench.serveHook()],
	['staging', () => bench.serveStaging({layout: 'legacy', final: 'pre'})],
] as const)("the hook's %s directory that vanished is made again", async (_, serve) => {
	bench.extraction = {...bench.extraction, concurrency: 1};
	await serve();
	bench.server.faults.push('the dump directory goes');
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.asked().filter(index => index === 0).length).toBe(2);
});

test('a dump of the hook with a row too few is told, never stored', async () => {
	bench.extraction = {...bench.extraction, concurrency: 1};
	await bench.serveHook();
	bench.server.faults.push('a row short', 'a row short', 'a row short');
	expect(await bench.run()).toBe(1);
	const rows = bench.records[0]?.input_ids.length ?? 0;
	expect(failedWords()).toBe(`  [0] failed: the dump has ${rows - 1} rows where ${rows} belong`);
	expect(rightFiles()).toBe(11);
});

test('a second dump under a name that was read already confuses nothing and stays', async () => {
	const taken = new Set<string>();
	await bench.serveHook({
		prefillMs: 10,
		served: () => {
			const gone = bench.server.rids.slice(0, -1).filter(rid => !existsSync(`${bench.dumps}/req_${rid}`));
			for (const rid of gone) writeRaw(bench.dumps, rid, [1, 2, 3]);
			for (const rid of gone) taken.add(rid);
		},
	});
	bench.extraction = {...bench.extraction, concurrency: 1};
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(new Set(bench.server.rids).size).toBe(bench.server.rids.length);
	expect(taken.size).toBeGreaterThan(0);
	expect(readdirSync(bench.dumps).sort()).toEqual([...taken].map(rid => `req_${rid}`).sort());
});

const trial = mkdtempSync(join(tmpdir(), 'relight-ro-'));
const mount = (place: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'relight-test', place]).status;
const mounted = process.getuid?.() === 0 && mount(trial) === 0;
if (mounted) execFileSync('umount', ['-l', trial]);
else process.stdout.write('skipped: no file system may be mounted here, so none can be read-only\n');
rmSync(trial, {recursive: true});

test.skipIf(!mounted)(
	'a disk that is really read-only ends the run in words; the rest is whole, and the next run goes on',
	async () => {
		const place = `${bench.extraction.output}/rows_5-10`;
		mkdirSync(place, {recursive: true});
		expect(mount(place)).toBe(0);
		try {
			await bench.serveHook();
			expect(await bench.run()).toBe(2);
			expect(bench.lines.at(-1)).toMatch(
				/^Failed: EROFS: read-only file system, open '.*rows_5-10\/\.data_\d\.pt\.\d+\.tmp'$/,
			);
			expect(rightFiles()).toBeLessThan(12);
		} finally {
			execFileSync('umount', ['-l', place]);
		}
		expect(await bench.run()).toBe(0);
		expect(allNull(bench.wrong())).toBe(true);
	},
);
