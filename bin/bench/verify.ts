import {spawnSync} from 'node:child_process';
import {closeSync, mkdtempSync, openSync, rmSync, writevSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {type Tree, tensor} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';
import {checkFiles} from '../../src/ops/verify/pool.ts';
import type {Level} from '../../src/ops/verify/verdict.ts';
import {atLeast, atMost, best, type Cost, cost, costOf, has, inTurn, say, type Turn} from './cost.ts';
import {type Peers, verifyPeers} from './verify-peers.ts';

const FILES = 20;
const TOKENS = 3_050;
const WIDTH = 2_048;
/** Looks per file and turn: the start of a thread, once per run, must not count for much. */
const LOOKS = 6;
const ROUNDS = 5;
/** Short turns, and many of them in each round: CPU time of one that others disturbed is up to twice as much. */
const SHORT_TURNS = 20;
const PAIRS = 15;

/**
 * What a look at 20 files of 50 MB costs, beside the programs that people use for it, in one run on one machine. Files are
 * in memory when it starts, except where it says cold. Both sides of a comparison take their turns one after the other, as
 * many of the one as of the other, and the least of each counts.
 */
export async function verify(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-verify-'));
	try {
		const {paths, bytes} = makeFiles(folder);
		const crc = await preferNativeCrc();
		say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; not compared: @node-rs/crc32, not installed'}`);
		const peers = verifyPeers(paths);
		const title = `${FILES} files, ${(bytes / 1e6).toFixed(0)} MB in all, ms per 100 MB`;
		say(`${title.padEnd(45)}    wall     CPU`);
		await structure(paths, bytes, peers);
		await values(paths, bytes);
		await everyByte(paths, bytes, peers, crc === 'native');
		await coldReads(paths, bytes);
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

async function look(paths: readonly string[], level: Level, workers: number): Promise<void> {
	let wrong = 0;
	await checkFiles(paths, {level, hidden: null, normWeight: null}, workers, ({verdict}) => {
		if (verdict.verdict !== 'done') wrong++;
	});
	if (wrong > 0) throw new Error(`${wrong} of the bench's own files are not done`);
}

/** Takes the turns and says what came of them. */
async function compared<Turns extends {readonly [name: string]: Turn}>(
	rounds: number,
	bytes: number,
	turns: Turns,
	each = `least of ${rounds}`,
): Promise<{readonly [Name in keyof Turns]: Cost}> {
	const costs = await inTurn(rounds, turns);
	const per100 = (ms: number): string => (ms / (bytes / 1e8)).toFixed(2).padStart(8);
	for (const [name, {wallMs, cpuMs}] of Object.entries<Cost>(costs))
		say(`${name.padEnd(45)}${per100(wallMs)}${per100(cpuMs)}  ${each}`);
	return costs;
}

const once =
	(paths: readonly string[], level: Level): Turn =>
	() =>
		cost(() => look(paths, level, 0));

/** Per look at all files, of several. */
const oftenOf =
	(paths: readonly string[], run: (often: readonly string[]) => Promise<Cost>): Turn =>
	async () => {
		const {wallMs, cpuMs} = await run(Array.from({length: LOOKS}, () => paths).flat());
		return {wallMs: wallMs / LOOKS, cpuMs: cpuMs / LOOKS};
	};

async function structure(paths: readonly string[], bytes: number, {mapped}: Peers): Promise<void> {
	const costs = await compared(
		ROUNDS,
		bytes,
		{
			structure: oftenOf(paths, often => best(() => look(often, 'structure', 0), SHORT_TURNS)),
			...(mapped && {'torch.load(mmap=True)': () => mapped(SHORT_TURNS)}),
		},
		`least of ${ROUNDS} x ${SHORT_TURNS}`,
	);
	const own = costs.structure.cpuMs / FILES;
	atMost('structure: CPU per file', own * 1_000, 'µs', 60);
	const theirs = costs['torch.load(mmap=True)'];
	if (theirs)
		atLeast('structure: times as fast as torch.load(mmap=True), CPU', theirs.cpuMs / FILES / own, 'x', 4, '5');
}

async function values(paths: readonly string[], bytes: number): Promise<void> {
	const costs = await compared(PAIRS, bytes, {crc: once(paths, 'crc'), values: once(paths, 'values')});
	atMost('values: on top of crc, CPU', (costs.values.cpuMs / costs.crc.cpuMs - 1) * 100, '%', 15);
}

/** CPU where one thread is compared with one, wall where the number of threads is the point. */
async function everyByte(
	paths: readonly string[],
	bytes: number,
	{cat, unzip, load}: Peers,
	native: boolean,
): Promise<void> {
	const threads = (workers: number): Turn => oftenOf(paths, often => cost(() => look(often, 'crc', workers)));
	const costs = await compared(ROUNDS, bytes, {
		crc: once(paths, 'crc'),
		'crc, 1 worker': threads(1),
		'crc, 2 workers': threads(2),
		cat,
		...(unzip && {'unzip -t': unzip}),
		...(load && {'torch.load': load}),
	});
	const {crc, 'crc, 1 worker': one, 'crc, 2 workers': two, 'unzip -t': tested, 'torch.load': loaded} = costs;
	if (tested) {
		atLeast('crc, 1 thread: times as fast as unzip -t, CPU', tested.cpuMs / crc.cpuMs, 'x', 12, '20');
		atLeast('crc, 2 workers: times as fast as unzip -t, wall', tested.wallMs / two.wallMs, 'x', 33, '38');
		if (!native) say('  (33 is for a native crc: reading and zlib on two cores end at 22 to 27)');
	}
	if (loaded) atLeast('crc, 2 workers: times as fast as torch.load, wall', loaded.wallMs / two.wallMs, 'x', 7);
	atLeast('crc: 2 workers against 1, wall', one.wallMs / two.wallMs, 'x', 1.6);
}

/** `dd` can take a file out of the kernel's cache; nothing in Node can. */
async function coldReads(paths: readonly string[], bytes: number): Promise<void> {
	if (!has('dd')) return say('cold reads: not compared, no dd here');
	const cool = (): void => {
		for (const path of paths)
			spawnSync('dd', [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
	};
	const costs = await compared(ROUNDS, bytes, {
		'cat, cold': () => {
			cool();
			return costOf(['sh', '-c', 'cat "$@" >/dev/null', 'sh', ...paths]);
		},
		'crc, 2 workers, cold': () => {
			cool();
			return cost(() => look(paths, 'crc', 2));
		},
	});
	const share = costs['cat, cold'].wallMs / costs['crc, 2 workers, cold'].wallMs;
	atLeast('crc cold, 2 workers: share of the speed of cat, wall', share, 'x', 0.9, '1');
}
