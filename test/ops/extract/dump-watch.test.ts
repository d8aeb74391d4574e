import {spawnSync} from 'node:child_process';
import {EventEmitter} from 'node:events';
import {mkdirSync, mkdtempSync, renameSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {FSWatcher} from 'chokidar';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {DumpWatch, systemWatch, type WatchIo} from '../../../src/ops/extract/dump-watch.ts';
import type {DumpSource, RawDump} from '../../../src/ops/extract/dumps.ts';
import {namedDumps} from '../../../src/ops/extract/named-dumps.ts';
import {bundle} from '../drill/support/part-program.ts';
import {until} from '../drill/support/shell.ts';
import {fiveStates, packed, writeRaw} from './support/hook-dumps.ts';

let root: string;
let dumps: string;
let source: DumpSource | null;
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-watch-'));
	dumps = join(root, 'dumps');
	mkdirSync(dumps);
	source = null;
});
afterEach(() => {
	source?.close();
	rmSync(root, {recursive: true});
});

/** Nobody who looks by himself would see anything before these tests are over. */
const NEVER = 3_600_000;
const watching: WatchIo = {...systemWatch, slowMs: NEVER};

/** How many watchers were set up, so that a test can wait for one. */
function counted(io: WatchIo): {io: WatchIo; ready: (count: number) => Promise<void>} {
	let sum = 0;
	let tell = (): void => {};
	const watch = async (directory: string) => {
		const watcher = await io.watch(directory);
		watcher.once('ready', () => {
			sum++;
			setImmediate(() => tell());
		});
		return watcher;
	};
	const ready = async (count: number): Promise<void> => {
		while (sum < count)
			await new Promise<void>(resolve => {
				tell = resolve;
			});
	};
	return {io: {...io, watch}, ready};
}

function sourceWith(io: WatchIo): DumpSource {
	source = namedDumps({dir: dumps, limitMs: NEVER, watch: new DumpWatch([dumps], io)});
	return source;
}

const idsOf = (at: number): number[] => Array.from({length: 3 + (at % 5)}, (_, token) => at * 10 + token);
const rid = (at: number): string => `relight-${at}-000000000000`;

function wait(from: DumpSource, at: number): Promise<RawDump> {
	const ids = idsOf(at);
	const found = from.expect({rid: rid(at), rows: ids.length, ids: packed(ids), hiddenSize: HIDDEN_SIZE})();
	return found as Promise<RawDump>;
}

test('a burst of 200 dumps: each wakes the one that waits for it, and each gets its own', async () => {
	const {io, ready} = counted(watching);
	const from = sourceWith(io);
	const waiting = Array.from({length: 200}, (_, at) => wait(from, at));
	await ready(1);
	for (let at = 0; at < 200; at++) writeRaw(dumps, rid(at), idsOf(at), at % 3 === 0 ? {chunk: 2} : {});
	const found = await Promise.all(waiting);
	for (const [at, {states}] of found.entries()) expect(states).toEqual(fiveStates(idsOf(at)));
}, 60_000);

test('without a watcher those who wait look by themselves', async () => {
	const from = sourceWith({...watching, watch: () => Promise.reject(new Error('no inotify here'))});
	const waiting = wait(from, 1);
	setImmediate(() => writeRaw(dumps, rid(1), idsOf(1)));
	expect((await waiting).states).toEqual(fiveStates(idsOf(1)));
});

test('a watcher that fails while it watches is no loss', async () => {
	const broken = Object.assign(new EventEmitter(), {close: () => Promise.resolve()}) as unknown as FSWatcher;
	const from = sourceWith({...watching, watch: () => Promise.resolve(broken)});
	const waiting = wait(from, 2);
	await new Promise(setImmediate);
	broken.emit('ready');
	await new Promise(setImmediate);
	writeRaw(dumps, rid(2), idsOf(2));
	broken.emit('error', new Error('ENOSPC: no watches left'));
	expect((await waiting).states).toEqual(fiveStates(idsOf(2)));
});

test('a directory that vanishes and comes back is watched again', async () => {
	const {io, ready} = counted(watching);
	const from = sourceWith(io);
	const waiting = wait(from, 3);
	await ready(1);
	rmSync(dumps, {recursive: true});
	mkdirSync(dumps);
	await ready(2);
	writeRaw(dumps, rid(3), idsOf(3));
	expect((await waiting).states).toEqual(fiveStates(idsOf(3)));
});

test('a directory that was mounted over is watched under its new identity, though no watcher tells', async () => {
	let watchers = 0;
	const mute = (): FSWatcher => {
		const made = Object.assign(new EventEmitter(), {close: () => Promise.resolve()});
		watchers++;
		setImmediate(() => made.emit('ready'));
		return made as unknown as FSWatcher;
	};
	const from = sourceWith({...watching, slowMs: 10, watch: () => Promise.resolve(mute())});
	const waiting = wait(from, 4);
	const seen = (count: number) =>
		until(
			() => watchers,
			now => now >= count,
		);
	await seen(1);
	mkdirSync(`${root}/new`);
	renameSync(dumps, `${root}/old`);
	renameSync(`${root}/new`, dumps);
	await seen(2);
	writeRaw(dumps, rid(4), idsOf(4));
	expect((await waiting).states).toEqual(fiveStates(idsOf(4)));
	expect(watchers).toBe(2);
});

test('watching keeps no process alive', async () => {
	const program = await bundle(`
import {DumpWatch, systemWatch} from './src/ops/extract/dump-watch.ts';
const pause = new DumpWatch([process.argv[2]], {...systemWatch, slowMs: 20, fastMs: 20}).pauses();
for (let turn = 0; turn < 10; turn++) await pause();
console.log('done');
`);
	const {stdout, status} = spawnSync(process.execPath, [program.file, dumps], {encoding: 'utf8', timeout: 30_000});
	program.remove();
	expect([stdout, status]).toEqual(['done\n', 0]);
}, 40_000);
