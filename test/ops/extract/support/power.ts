import {mkdirSync, rmSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {type FilePort, systemFiles} from '../../../../src/ops/extract/file-port.ts';

type Call =
	| {readonly call: 'open' | 'mkdir' | 'remove'; readonly path: string; readonly file: number}
	| {readonly call: 'rename'; readonly path: string; readonly to: string}
	| {readonly call: 'write'; readonly file: number; readonly bytes: Buffer}
	/** `of`: so many calls had ended when it began. What came later is not covered by it. */
	| {readonly call: 'sync'; readonly file: number; readonly of: number}
	| {readonly call: 'sync directory'; readonly path: string; readonly of: number};

/** What the disk may have made of bytes, and of names, that nobody had synced when the power went. */
export type Loss = {readonly bytes: 'dropped' | 'torn' | 'zeros'; readonly names: 'dropped' | 'there'};

export const LOSSES: readonly Loss[] = (['dropped', 'torn', 'zeros'] as const).flatMap(bytes =>
	(['dropped', 'there'] as const).map(names => ({bytes, names})),
);

/** Few bytes at a time, so that the power can go in the middle of a file. */
const WRITE_BYTES = 3_000;

/** Long for some, so that several files are under way at once, and whoever does not wait for the end is found out. */
const DATA_SYNC_MS = [9, 2, 60, 25];
const OTHER_SYNC_MS = 1;

/**
 * Does what it is told on the real disk, and remembers each call in order of its end: until then the power may have gone
 * before it.
 */
export function recorder(): {readonly calls: Call[]; readonly files: FilePort} {
	const calls: Call[] = [];
	const open = new Map<number, number>();
	let number = 0;
	let syncs = 0;
	const opened = (fd: number, path: string): number => {
		open.set(fd, ++number);
		calls.push({call: 'open', path, file: number});
		return fd;
	};
	const later = async (ms: number | undefined, call: Call): Promise<void> => {
		await sleep(ms);
		calls.push(call);
	};
	const temporaries = new Set<number>();
	const files: FilePort = {
		...systemFiles,
		create(path) {
			const fd = opened(systemFiles.create(path), path);
			temporaries.add(number);
			return fd;
		},
		append: path => opened(systemFiles.append(path), path),
		write(fd, pieces) {
			const bytes = Buffer.concat(pieces).subarray(0, WRITE_BYTES);
			calls.push({call: 'write', file: open.get(fd) ?? 0, bytes});
			return systemFiles.write(fd, [bytes]);
		},
		direct: () => null,
		async fill(fd, bytes) {
			await sleep(0);
			return files.write(fd, [bytes]);
		},
		sync(fd) {
			calls.push({call: 'sync', file: open.get(fd) ?? 0, of: calls.length});
		},
		settle(fd) {
			const ms = temporaries.has(open.get(fd) ?? 0) ? DATA_SYNC_MS[syncs++ % DATA_SYNC_MS.length] : OTHER_SYNC_MS;
			return later(ms, {call: 'sync', file: open.get(fd) ?? 0, of: calls.length});
		},
		rename(path, to) {
			calls.push({call: 'rename', path, to});
			systemFiles.rename(path, to);
		},
		remove(path) {
			calls.push({call: 'remove', path, file: 0});
			systemFiles.remove(path);
		},
		makeDirectory(path) {
			calls.push({call: 'mkdir', path, file: 0});
			systemFiles.makeDirectory(path);
		},
		syncDirectory(path) {
			calls.push({call: 'sync directory', path, of: calls.length});
		},
		settleDirectory: path => later(OTHER_SYNC_MS, {call: 'sync directory', path, of: calls.length}),
	};
	return {calls, files};
}

/** A file is its bytes, apart from its name: what is synced of the one says nothing of the other. `at`: which call it was. */
type Inode = {synced: Buffer[]; pending: {readonly bytes: Buffer; readonly at: number}[]};
type Name = {readonly directory: string; readonly at: number; apply(names: Map<string, number | 'directory'>): void};

/** Builds below `root` what is left of `calls` when the power goes after the last of them. Paths below `from` only. */
export function afterPowerCut(calls: readonly Call[], loss: Loss, from: string, root: string): void {
	const inodes = new Map<number, Inode>();
	const durable = new Map<string, number | 'directory'>();
	let pending: Name[] = [];
	for (const [at, each] of calls.entries()) {
		if (each.call === 'write') inodes.get(each.file)?.pending.push({bytes: each.bytes, at});
		else if (each.call === 'sync') {
			const {synced = [], pending: late = []} = inodes.get(each.file) ?? {};
			const covered = late.filter(write => write.at < each.of).map(({bytes}) => bytes);
			const rest = late.filter(write => write.at >= each.of);
			inodes.set(each.file, {synced: [...synced, ...covered], pending: rest});
		} else if (each.call === 'sync directory') {
			const covered = (name: Name): boolean => name.directory === each.path && name.at < each.of;
			for (const name of pending) if (covered(name)) name.apply(durable);
			pending = pending.filter(name => !covered(name));
		} else {
			if (each.call === 'open') inodes.set(each.file, {synced: [], pending: []});
			pending.push({directory: dirname(each.path), at, apply: names => change(names, each)});
		}
	}
	if (loss.names === 'there') for (const name of pending) name.apply(durable);
	rmSync(root, {recursive: true, force: true});
	mkdirSync(root);
	for (const [path, inode] of durable) {
		if (inode === 'directory' || !reachable(path, from, durable)) continue;
		const place = `${root}${path.slice(from.length)}`;
		mkdirSync(dirname(place), {recursive: true});
		writeFileSync(place, contents(inodes.get(inode), loss));
	}
}

function change(names: Map<string, number | 'directory'>, call: Call): void {
	if (call.call === 'open') names.set(call.path, call.file);
	else if (call.call === 'mkdir') names.set(call.path, 'directory');
	else if (call.call === 'remove') names.delete(call.path);
	else if (call.call === 'rename') {
		const inode = names.get(call.path);
		names.delete(call.path);
		if (inode !== undefined) names.set(call.to, inode);
	}
}

/** A file in a directory whose own name was lost is lost with it. */
function reachable(path: string, from: string, names: ReadonlyMap<string, number | 'directory'>): boolean {
	const parent = dirname(path);
	return (
		parent === from || parent === `${from}/out` || (names.get(parent) === 'directory' && reachable(parent, from, names))
	);
}

function contents(inode: Inode | undefined, {bytes}: Loss): Buffer {
	const synced = Buffer.concat(inode?.synced ?? []);
	const late = Buffer.concat(inode?.pending.map(write => write.bytes) ?? []);
	if (bytes === 'dropped') return synced;
	if (bytes === 'zeros') return Buffer.concat([synced, Buffer.alloc(late.length)]);
	return Buffer.concat([synced, late.subarray(0, late.length >> 1)]);
}
