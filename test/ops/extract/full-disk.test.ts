import {execFileSync, spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {until} from '../drill/support/shell.ts';
import {allNull, Bench} from './support/bench.ts';

/** A real full disk needs a file system of its own: only root can make one, and not everywhere. */
const mount = mkdtempSync(join(tmpdir(), 'relight-full-'));
const mounted =
	process.getuid?.() === 0 &&
	spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=160k', 'relight-test', mount], {stdio: 'ignore'}).status === 0;
if (!mounted) process.stdout.write('skipped: no file system may be mounted here, so no disk can be filled\n');

let bench: Bench;
beforeAll(async () => {
	bench = new Bench();
	await bench.serve();
	bench.extraction = {...bench.extraction, output: `${mount}/out`, keepFreeBytes: 0};
});
afterAll(async () => {
	await bench.end();
	if (mounted) execFileSync('umount', ['-l', mount]);
	rmSync(mount, {recursive: true, force: true});
});

test.skipIf(!mounted)('on a disk that is really full the run waits and goes on, and no half file is left', async () => {
	writeFileSync(`${mount}/ballast`, Buffer.alloc(100_000));
	const running = bench.run();
	await until(
		() => bench.lines,
		lines => lines.some(line => line.startsWith('Waiting for room: ')),
	);
	const before = bench.wrong().filter(reason => reason === null).length;
	expect(before).toBeLessThan(12);
	execFileSync('mount', ['-o', 'remount,size=4m', mount]);
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.server.rids.length).toBe(12);
});
