import {spawnSync} from 'node:child_process';
import {closeSync, mkdtempSync, openSync, rmSync, writevSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {type Tree, tensor} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';
import {checkFiles} from '../../src/ops/verify/pool.ts';
import type {Level} from '../../src/ops/verify/verdict.ts';

const FILES = 20;
const TOKENS = 3_050;
const WIDTH = 2_048;
const TURNS = 3;
/** Looks per file and turn: the start of a thread must not count for much. */
const LOOKS = 4;

type Cost = {readonly wallMs: number; readonly cpuMs: number};

/**
 * What a look at 20 files of 50 MB costs, beside the programs that people use for it, in one run on one machine. Files are
 * in memory when it starts. The best of three turns counts: the machine does other things, too.
 */
export async function verify(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-verify-'));
	try {
		const {paths, bytes} = makeFiles(folder);
		const per100 = (ms: number): string => (ms / (bytes / 1e8)).toFixed(1).padStart(8);
		const often = Array.from({length: LOOKS}, () => paths).flat();
		const each = ({wallMs, cpuMs}: Cost): Cost => ({wallMs: wallMs / LOOKS, cpuMs: cpuMs / LOOKS});
		say(`${FILES} files, ${(bytes / 1e6).toFixed(0)} MB in all, ms per 100 MB        wall      CPU`);
		const own = new Map<string, Cost>();
		for (const level of ['structure', 'crc', 'values'] as const) {
			for (const workers of [1, 2]) {
				const cost = each(await best(() => look(often, level, workers)));
				own.set(`${level} ${workers}`, cost);
				say(
					`relight ${level}, ${workers} ${workers === 1 ? 'worker ' : 'workers'}`.padEnd(45) +
						per100(cost.wallMs) +
						per100(cost.cpuMs),
				);
			}
		}
		const others = await peers(paths, folder, (name, cost) =>
			say(name.padEnd(45) + per100(cost.wallMs) + per100(cost.cpuMs)),
		);
		ratios(own, others);
		const crc = await preferNativeCrc();
		say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; skipped: @node-rs/crc32, not installed'}`);
		say('skipped: cold reads, which are the speed of the disk');
		const many = await best(() => look(Array.from({length: 100}, () => paths).flat(), 'structure', 0));
		say(`structure, no thread: ${((many.cpuMs / (FILES * 100)) * 1_000).toFixed(0)} µs of CPU a file (must 60)`);
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

async function best(run: () => Promise<void> | void, cpuNow: () => number = ownCpuMs): Promise<Cost> {
	const costs: Cost[] = [];
	for (let turn = 0; turn < TURNS; turn++) {
		const [wall, cpu] = [performance.now(), cpuNow()];
		await run();
		costs.push({wallMs: performance.now() - wall, cpuMs: cpuNow() - cpu});
	}
	return {wallMs: Math.min(...costs.map(each => each.wallMs)), cpuMs: Math.min(...costs.map(each => each.cpuMs))};
}

/** This process with its threads. */
function ownCpuMs(): number {
	const {user, system} = process.cpuUsage();
	return (user + system) / 1_000;
}

type Peer = {readonly name: string; readonly argv: readonly string[]; readonly missing: string | null};

const TORCH = `
import sys, resource, time, torch
u = resource.getrusage(resource.RUSAGE_SELF); w = time.time()
for path in sys.argv[1:]: torch.load(path)
v = resource.getrusage(resource.RUSAGE_SELF)
print((time.time() - w) * 1000, (v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime) * 1000)`;

/** Costs of the others that are here, by name; says which are not. */
async function peers(
	paths: readonly string[],
	folder: string,
	tell: (name: string, cost: Cost) => void,
): Promise<Map<string, Cost>> {
	const found = new Map<string, Cost>();
	const python = ['python3', '/usr/bin/python3'].find(each => spawnSync(each, ['-c', 'import torch']).status === 0);
	const has = (name: string) => spawnSync('which', [name]).status === 0;
	const list: readonly Peer[] = [
		{
			name: 'unzip -t',
			argv: ['sh', '-c', 'for f; do unzip -tqq "$f" || exit 1; done', 'sh'],
			missing: has('unzip') ? null : 'unzip',
		},
		{name: 'cat >/dev/null', argv: ['sh', '-c', 'cat "$@" >/dev/null', 'sh'], missing: null},
	];
	for (const {name, argv, missing} of list) {
		if (missing) {
			say(`${name}: skipped, no ${missing} here`);
			continue;
		}
		const cost = timed([...argv, ...paths], folder);
		found.set(name, cost);
		tell(name, cost);
	}
	if (!python) say('torch.load: skipped, no python3 with torch here');
	else {
		const turns = Array.from(
			{length: TURNS},
			() => spawnSync(python, ['-c', TORCH, ...paths], {encoding: 'utf8'}).stdout,
		);
		const costs = turns.map(each => each.trim().split(' ').map(Number));
		const cost = {
			wallMs: Math.min(...costs.map(each => each[0] ?? 0)),
			cpuMs: Math.min(...costs.map(each => each[1] ?? 0)),
		};
		found.set('torch.load', cost);
		tell('torch.load (its import not counted)', cost);
	}
	return found;
}

/** CPU of a finished child is in the shell's `times`. */
function timed(argv: readonly string[], cwd: string): Cost {
	const costs = Array.from({length: TURNS}, () => {
		const startedAt = performance.now();
		const {stdout, status} = spawnSync('bash', ['-c', '"$@"; code=$?; times; exit $code', 'bash', ...argv], {
			cwd,
			encoding: 'utf8',
		});
		if (status !== 0) throw new Error(`${argv[0]} ended with ${status}`);
		const [user = '', system = ''] = (stdout.trim().split('\n').at(-1) ?? '').split(' ');
		return {wallMs: performance.now() - startedAt, cpuMs: clockMs(user) + clockMs(system)};
	});
	return {wallMs: Math.min(...costs.map(each => each.wallMs)), cpuMs: Math.min(...costs.map(each => each.cpuMs))};
}

/** `0m1.234s` */
function clockMs(text: string): number {
	const [, minutes = 0, seconds = 0] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
	return (Number(minutes) * 60 + Number(seconds)) * 1_000;
}

/** Each ratio beside what pt-format asks for. */
function ratios(own: ReadonlyMap<string, Cost>, others: ReadonlyMap<string, Cost>): void {
	const targets: readonly (readonly [string, string, string])[] = [
		['crc 1', 'unzip -t', 'must 12, aim 20 with a native crc'],
		['crc 2', 'unzip -t', 'must 33'],
		['crc 2', 'torch.load', 'must 7'],
		['values 1', 'unzip -t', ''],
		['crc 1', 'cat >/dev/null', 'share of the speed of reading alone'],
		['crc 2', 'cat >/dev/null', ''],
	];
	for (const [mine, other, target] of targets) {
		const [one, two] = [own.get(mine), others.get(other)];
		if (!one || !two) continue;
		const times = `${(two.wallMs / one.wallMs).toFixed(2).padStart(8)} wall ${(two.cpuMs / one.cpuMs).toFixed(2).padStart(8)} CPU`;
		say(`${mine}: times as fast as ${other}`.padEnd(45) + times + (target && `   ${target}`));
	}
	const [crc, values] = [own.get('crc 1'), own.get('values 1')];
	if (crc && values) say(`values on top of crc: ${((values.cpuMs / crc.cpuMs - 1) * 100).toFixed(0)} % CPU (must 15)`);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
