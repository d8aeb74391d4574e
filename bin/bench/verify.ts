import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {say} from './cost.ts';
import {makeSamples, type Samples} from './samples.ts';
import {structure, structureCold} from './structure.ts';
import {torchHere} from './verify-peers.ts';
import {everyByte, finite, values, wholeCold} from './whole.ts';

const FILES = 10;
/** From the disk each file is read once in a turn: the start of a thread must not count for much there either. */
const COLD_FILES = 30;
const TOKENS = 3_050;
const WIDTH = 4_096;

/**
 * What a look at files of 100 MB costs, beside the programs that people use for it, in one run on one machine. Files are
 * in memory when it starts, except where it says cold. Both sides of a comparison take their turns one after the other, as
 * many of the one as of the other, and the least of each counts.
 */
export async function verify(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-verify-'));
	try {
		const all = makeSamples(folder, COLD_FILES, TOKENS, WIDTH);
		const some: Samples = {paths: all.paths.slice(0, FILES), bytes: (all.bytes / COLD_FILES) * FILES};
		const crc = await preferNativeCrc();
		say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; not compared: @node-rs/crc32, not installed'}`);
		const torch = torchHere();
		const title = `${FILES} files, ${(some.bytes / 1e6).toFixed(0)} MB in all, ms per 100 MB`;
		say(`${title.padEnd(45)}    wall     CPU`);
		await structure(some, torch);
		await finite(folder, torch);
		await values(some);
		await everyByte(some, torch, crc === 'native');
		await wholeCold(all);
		await structureCold(folder, torch);
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}
}
