import {type ChildProcess, execFileSync, spawn, spawnSync} from 'node:child_process';
import {cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {LOCAL_TARGET} from '../../src/ops/config/config.ts';
import {PROBES} from '../../src/ops/probes/catalogue.ts';
import {NO_HINTS} from '../../src/ops/probes/probe.ts';
import {noDeadMount, withDeadMount} from './dead-mount.ts';
import {heapGrowth, heapOptions} from './heap.ts';
import {costOf, percent} from './process-cost.ts';
import {type Figures, measure, sleep, type Watched, watch} from './watched.ts';

/** The same build moves by a fifth from one measurement to the next. */
const TURNS = 3;
const PROGRAM = join(import.meta.dirname, 'relight.js');
const WARM_MS = 8_000;
const FOR_MS = 20_000;
const MANY = 5_000;

/** Both look once a second, as the console does; btop says so in a file alone, and looks every two unless told. */
const PEERS: Record<string, readonly string[]> = {htop: ['-d', '10'], btop: ['--utf-force']};
const BTOP_CONFIG = 'update_ms = 1000\n';

type Bench = {
	readonly folder: string;
	readonly env: Record<string, string>;
	readonly config: string;
	readonly peers: readonly string[];
	readonly open: () => Promise<Watched>;
	/** What the stand-in for nvidia-smi costs, in percent of a core. */
	readonly toolPercent: number;
};

/**
 * The console as a monitor, beside the monitors a user would pick instead, on the same machine in the same run: 140×45,
 * one look a second or two, the real process table, eight simulated cards. CPU is the program with all it starts.
 */
const PARTS: Record<string, (bench: Bench) => Promise<void>> = {
	async paint({open}) {
		say(`first paint, ms (median of 5)                  ${(await firstPaint(open)).toFixed(0)}   must 400, aim 200`);
	},
	async quiet({env}) {
		const quiet = await watch(process.execPath, [PROGRAM], /relight/, env);
		await report('relight, a quiet box without cards', quiet, 'bytes/s must 1500, aim 500');
		quiet.end();
	},
	async cards(bench) {
		const live = await bench.open();
		const own = await report(
			`relight, 8 cards, ${count()} processes`,
			live,
			'CPU must 3 %, aim 1.5 %; RSS must 140 MB; bytes/s must 8000',
			bench.toolPercent,
		);
		await keys('key to paint, ms', live);
		live.end();
		for (const peer of bench.peers) await reportPeer(peer, bench.folder, own);
	},
	async frozen({env}) {
		const screen = await watch(process.execPath, [PROGRAM, 'drill', 'frozen-ssh'], /relight/, env);
		await sleep(9_000);
		await keys('key to paint while SSH is frozen, ms', screen);
		screen.end();
	},
	async mount({folder, env, config}) {
		const why = noDeadMount();
		if (why !== null) {
			say(`key to paint with a dead mount: not measured (${why})`);
			return;
		}
		const dead = join(folder, 'dead');
		mkdirSync(dead);
		const named = join(folder, 'dead-mount.yaml');
		writeFileSync(named, `${readFileSync(config, 'utf8')}    expect: {mounts: {${dead}: {}}}\n`);
		const [program = '', ...args] = withDeadMount(dead, [process.execPath, PROGRAM, '--config', named]);
		const screen = await watch(program, args, /relight/, env);
		await sleep(9_000);
		await keys('key to paint with a dead mount, ms', screen);
		screen.end();
	},
	async heap({folder, env, config}) {
		const heap = heapOptions(folder);
		const args = ['--expose-gc', ...heap.options.split(' '), PROGRAM, '--config', config];
		const soaked = await watch(process.execPath, args, /relight/, env);
		const {before, after, frames} = await heapGrowth(soaked, heap.read);
		soaked.end();
		say(
			`heap after ${frames} frames: ${(before / 1e6).toFixed(1)} -> ${(after / 1e6).toFixed(1)} MB   growth must be under 2 MB, aim 0`,
		);
	},
	async many(bench) {
		const sleepers: ChildProcess[] = [];
		try {
			for (let made = count(); made < MANY; made++) sleepers.push(spawn('sleep', ['600'], {stdio: 'ignore'}));
			const times: number[] = [];
			for (let turn = 0; turn < TURNS; turn++) {
				const busy = await bench.open();
				const many = await report(`relight, 8 cards, ${count()} processes`, busy, '', bench.toolPercent);
				busy.end();
				for (const peer of bench.peers) {
					const beside = await reportPeer(peer, bench.folder, many);
					if (peer === 'btop') times.push(many.cpuPercent / beside.cpuPercent);
				}
			}
			const median = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
			if (median !== undefined)
				say(`  CPU of btop beside it: ${median.toFixed(2)}x, median of ${TURNS} in turn   must 1x, aim 0.5x`);
		} finally {
			for (const sleeper of sleepers) sleeper.kill();
		}
	},
};

/** All parts, or those that are named. */
export async function monitor(named: readonly string[]): Promise<void> {
	const unknown = named.find(name => !(name in PARTS));
	if (unknown) throw new Error(`no part "${unknown}"; there are ${Object.keys(PARTS).join(', ')}`);
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-'));
	const env = {XDG_STATE_HOME: folder, HOME: folder};
	const config = join(folder, 'relight.yaml');
	writeFileSync(config, await localConfig(folder));
	mkdirSync(join(folder, 'btop'));
	writeFileSync(join(folder, 'btop/btop.conf'), BTOP_CONFIG);
	const peers = Object.keys(PEERS).filter(name => spawnSync('which', [name]).status === 0);
	const open = () => watch(process.execPath, [PROGRAM, '--config', config], /relight/, env);
	const toolPercent = standInPercent(folder);
	try {
		for (const [name, part] of Object.entries(PARTS))
			if (named.length === 0 || named.includes(name)) await part({folder, env, config, peers, open, toolPercent});
		if (peers.length < Object.keys(PEERS).length)
			say(
				`not installed here, so not compared: ${Object.keys(PEERS)
					.filter(name => !peers.includes(name))
					.join(', ')}`,
			);
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}
}

/**
 * This machine's own process table and no link in between. `nvidia-smi` prints what a box of eight cards printed once, for
 * next to nothing: the budget leaves the tools that are looked at out. The box is gone before anything is measured.
 */
async function localConfig(folder: string): Promise<string> {
	const {directory, child} = await startBox();
	const ask = (...args: string[]) => execFileSync(join(directory, 'bin/nvidia-smi'), args).toString();
	const bin = join(folder, 'bin');
	mkdirSync(bin);
	const queries = [...readQueries()];
	const cases = queries.map((query, index) => {
		writeFileSync(join(folder, `answer-${index}`), ask(query, '--format=csv,noheader,nounits'));
		return `${query}) exec cat ${folder}/answer-${index};;`;
	});
	cpSync(join(directory, 'dev'), join(folder, 'dev'), {recursive: true});
	child.kill('SIGTERM');
	writeFileSync(join(bin, 'nvidia-smi'), `#!/bin/sh\ncase $1 in\n${cases.join('\n')}\nesac\nexit 6\n`, {mode: 0o755});
	return [
		'hosts:',
		'  bench:',
		'    routes:',
		'      - local: true',
		'        environment:',
		`          path: ${bin}:/usr/bin:/bin`,
		`          dev: ${folder}/dev`,
		'',
	].join('\n');
}

/** The looked-at tool's own share, in percent of a core, at eleven questions in ten seconds. */
function standInPercent(folder: string): number {
	const [query = ''] = readQueries();
	const RUNS = 60;
	const before = costOf(process.pid);
	for (let run = 0; run < RUNS; run++) spawnSync(join(folder, 'bin/nvidia-smi'), [query]);
	const after = costOf(process.pid);
	const ticks = after.familyTicks - before.familyTicks - (after.ownTicks - before.ownTicks);
	return percent((ticks / RUNS) * 1.1, 1);
}

/** The queries that the probes make, taken from their scripts. */
function readQueries(): ReadonlySet<string> {
	const context = {target: LOCAL_TARGET, last: null, hints: NO_HINTS};
	const scripts = `${PROBES.gpus.script(context)}\n${PROBES.holders.script(context)}`;
	const asked = scripts.matchAll(/(--query-compute-apps=|\bq )(\w+,[\w.,]+)/g);
	const queries = new Set([...asked].map(([, how, fields]) => `${how === 'q ' ? '--query-gpu=' : how}${fields}`));
	// A stand-in that cannot answer would have a console without cards measured, and nobody would see it.
	if (queries.size !== 3)
		throw new Error(`the stand-in for nvidia-smi knows other questions: ${[...queries].join(' ')}`);
	return queries;
}

async function startBox(): Promise<{directory: string; child: ChildProcess}> {
	const child = spawn(process.execPath, [PROGRAM, 'drill', '--box'], {stdio: ['ignore', 'pipe', 'inherit']});
	let text = '';
	child.stdout.on('data', chunk => {
		text += chunk;
	});
	for (let turn = 0; turn < 1_000 && !text.includes('relight --config'); turn++) await sleep(20);
	const directory = /^box in (.*)$/m.exec(text)?.[1];
	if (!directory) throw new Error('the box did not come up');
	return {directory, child};
}

/** `toolPercent`: what the tool that is looked at costs by itself, which no budget counts. */
async function report(title: string, watched: Watched, target: string, toolPercent = 0): Promise<Figures> {
	const all = await measure(watched, WARM_MS, FOR_MS);
	const figures = {...all, cpuPercent: all.cpuPercent - toolPercent};
	const tool = toolPercent > 0 ? `, and ${toolPercent.toFixed(2)} % for nvidia-smi's stand-in` : '';
	say(`${title}\n  ${words(figures)}${tool}   ${target}`);
	return figures;
}

async function reportPeer(name: string, folder: string, own: Figures): Promise<Figures> {
	const peer = await watch(name, PEERS[name] ?? [], /./, {HOME: folder, XDG_CONFIG_HOME: folder});
	const figures = await measure(peer, WARM_MS, FOR_MS);
	peer.end();
	say(
		`  ${name.padEnd(6)} ${words(figures)}   relight / ${name}: CPU ${ratio(own.cpuPercent, figures.cpuPercent)}, bytes ${ratio(own.bytesPerSecond, figures.bytesPerSecond)}`,
	);
	return figures;
}

async function firstPaint(open: () => Promise<Watched>): Promise<number> {
	const times: number[] = [];
	for (let turn = 0; turn < 5; turn++) {
		const one = await open();
		times.push(one.firstPaintMs ?? Number.NaN);
		one.end();
		await sleep(300);
	}
	return times.sort((a, b) => a - b)[2] ?? Number.NaN;
}

async function keys(title: string, watched: Watched): Promise<void> {
	const times: number[] = [];
	for (let turn = 0; turn < 60; turn++) {
		times.push(await watched.keyMs('\t'));
		await sleep(110);
	}
	times.sort((a, b) => a - b);
	const at = (fraction: number) => (times[Math.floor(times.length * fraction)] ?? Number.NaN).toFixed(1);
	say(`  ${title}: p50 ${at(0.5)}, p95 ${at(0.95)}   p95 must 100, aim 50`);
}

const count = () => readdirSync('/proc').filter(name => /^\d+$/.test(name)).length;
const ratio = (one: number, other: number) => (other > 0 ? `${(one / other).toFixed(2)}x` : '-');
const say = (text: string) => process.stdout.write(`${text}\n`);
const words = ({cpuPercent, ownPercent, residentBytes, bytesPerSecond}: Figures) =>
	`CPU ${cpuPercent.toFixed(2)} % (itself ${ownPercent.toFixed(2)} %)  RSS ${(residentBytes / 1e6).toFixed(0)} MB  ${bytesPerSecond.toFixed(0)} B/s`;
