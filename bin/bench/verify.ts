import {spawnSync} from 'node:child_process';
import {closeSync, mkdtempSync, openSync, rmSync, writevSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {type Tree, tensor} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';
import {checkFiles} from '../../src/ops/verify/pool.ts';
import type {Level} from '../../src/ops/verify/verdict.ts';
import {atLeast, atMost, best, bestOf, type Cost, has, say} from './cost.ts';
import {verifyPeers} from './verify-peers.ts';

const FILES = 20;
const TOKENS = 3_050;
const WIDTH = 2_048;
/** Looks per file and turn: the start of a thread, once per run, must not count for much. */
const LOOKS = 6;
/** Short turns, and many of them: CPU time of a turn that others disturbed is up to twice as much. */
const SHORT_TURNS = 60;

/**
 * What a look at 20 files of 50 MB costs, beside the programs that people use for it, in one run on one machine. Files are
 * in memory when it starts, except where it says cold. The best of three turns counts.
 */
export async function verify(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-verify-'));
	try {
		const {paths, bytes} = makeFiles(folder);
		const crc = await preferNativeCrc();
		say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; not compared: @node-rs/crc32, not installed'}`);
		const own = await ownCosts(paths);
		const peers = verifyPeers(paths);
		const title = `${FILES} files, ${(bytes / 1e6).toFixed(0)} MB in all, ms per 100 MB`;
		say(`${title.padEnd(45)}    wall     CPU`);
		const per100 = (ms: number): string => (ms / (bytes / 1e8)).toFixed(2).padStart(8);
		for (const [name, {wallMs, cpuMs}] of [
			...[...own].map(([name, cost]) => [`relight ${name}`, cost] as const),
			...peers,
		])
			say(name.padEnd(45) + per100(wallMs) + per100(cpuMs));
		compare(own, peers, crc === 'native');
		await coldReads(paths);
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}
}

/** SpecForge's layout; finite values that differ from place to place. */
function makeFiles(folder: string): {paths: string[]; bytes: number} {
	const tree: Tree = {
		kind: 'dict',
		entries: [
			['input_ids', tensor('I64', [TOKENS])],
			['loss_mask', tensor('I64', [TOKENS])],
			['hidden_state', tensor('BF16', [1, TOKENS, WIDTH])],
			['aux_hidden_state', tensor('BF16', [1, TOKENS, 3 * WIDTH])],
		],
	};
	const ids = Buffer.from(BigInt64Array.from({length: TOKENS}, (_, at) => BigInt(at + 1)).buffer);
	const noise = Uint16Array.from(
		{length: TOKENS * 3 * WIDTH},
		(_, at) => 0x3c00 + (Math.imul(at, 2_654_435_761) >>> 23),
	);
	const all = Buffer.from(noise.buffer);
	const data = [ids, ids, all.subarray(all.length - TOKENS * WIDTH * 2), all];
	const paths: string[] = [];
	let bytes = 0;
	for (let index = 0; index < FILES; index++) {
		const path = join(folder, `data_${index}.ckpt`);
		const plan = planTorchFile(`data_${index}`, tree);
		const fd = openSync(path, 'w');
		for (const piece of torchFile(plan, data)) writevSync(fd, [piece]);
		closeSync(fd);
		paths.push(path);
		bytes += plan.bytes;
	}
	return {paths, bytes};
}

/** Of one look at all files, by level and count of workers; 0 is this thread. */
async function ownCosts(paths: readonly string[]): Promise<Map<string, Cost>> {
	const own = new Map<string, Cost>();
	const put = (name: string, {wallMs, cpuMs}: Cost, looks: number): void =>
		void own.set(name, {wallMs: wallMs / looks, cpuMs: cpuMs / looks});
	const often = Array.from({length: LOOKS}, () => paths).flat();
	put('structure 0', await best(() => look(often, 'structure', 0), SHORT_TURNS), LOOKS);
	for (const level of ['crc', 'values'] as const) put(`${level} 0`, await best(() => look(paths, level, 0), LOOKS), 1);
	for (const workers of [1, 2]) put(`crc ${workers}`, await best(() => look(often, 'crc', workers)), LOOKS);
	return own;
}

async function look(paths: readonly string[], level: Level, workers: number): Promise<void> {
	let wrong = 0;
	await checkFiles(paths, {level, hidden: null, normWeight: null}, workers, ({verdict}) => {
		if (verdict.verdict !== 'done') wrong++;
	});
	if (wrong > 0) throw new Error(`${wrong} of the bench's own files are not done`);
}

/** Each ratio beside what it must be. CPU where one thread is compared with one, wall where the number of threads is the point. */
function compare(own: ReadonlyMap<string, Cost>, peers: ReadonlyMap<string, Cost>, native: boolean): void {
	const none = {wallMs: Number.NaN, cpuMs: Number.NaN};
	const mine = (name: string): Cost => own.get(name) ?? none;
	const structure = mine('structure 0').cpuMs / FILES;
	atMost('structure: CPU per file', structure * 1_000, 'µs', 60);
	const [unzip, load, mapped] = ['unzip -t', 'torch.load', 'torch.load(mmap=True)'].map(name => peers.get(name));
	if (mapped)
		atLeast('structure: times as fast as torch.load(mmap=True), CPU', mapped.cpuMs / FILES / structure, 'x', 4, '5');
	if (unzip) {
		atLeast('crc, 1 thread: times as fast as unzip -t, CPU', unzip.cpuMs / mine('crc 0').cpuMs, 'x', 12, '20');
		atLeast('crc, 2 workers: times as fast as unzip -t, wall', unzip.wallMs / mine('crc 2').wallMs, 'x', 33, '38');
		if (!native) say('  (33 is for a native crc: reading and zlib on two cores end at 22 to 27)');
	}
	if (load) atLeast('crc, 2 workers: times as fast as torch.load, wall', load.wallMs / mine('crc 2').wallMs, 'x', 7);
	atLeast('crc: 2 workers against 1, wall', mine('crc 1').wallMs / mine('crc 2').wallMs, 'x', 1.6);
	atMost('values: on top of crc, CPU', (mine('values 0').cpuMs / mine('crc 0').cpuMs - 1) * 100, '%', 15);
}

/** `dd` can take a file out of the kernel's cache; nothing in Node can. */
async function coldReads(paths: readonly string[]): Promise<void> {
	if (!has('dd')) return say('cold reads: not compared, no dd here');
	const cool = (): void => {
		for (const path of paths)
			spawnSync('dd', [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
	};
	const cat = bestOf(['sh', '-c', 'cat "$@" >/dev/null', 'sh', ...paths], 3, cool);
	const own = await best(() => look(paths, 'crc', 2), 3, cool);
	say(`cold: cat ${cat.wallMs.toFixed(0)} ms, relight crc with 2 workers ${own.wallMs.toFixed(0)} ms`);
	atLeast('crc cold, 2 workers: share of the speed of cat, wall', cat.wallMs / own.wallMs, 'x', 0.9, '1');
}
