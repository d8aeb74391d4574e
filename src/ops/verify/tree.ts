import {type Dirent, readdirSync, statSync} from 'node:fs';
import {basename, dirname, join, resolve} from 'node:path';
import {isTensorFile} from './names.ts';
import type {Identity} from './verdict.ts';

/** A file to look at, and the tree it belongs to: where suspects go and, for a whole tree, results are remembered. */
export type Found = {readonly path: string; readonly tree: string; readonly identity: Identity};

/** Asked to look at something that is not there. */
export class MissingPath extends Error {}

/** A directory that cannot be read: what lies in it is unknown, and that is not the same as nothing. */
export class UnreadableDirectory extends Error {}

/** Where suspects go, what the tools keep for themselves, what is on its way. */
const SKIPPED = new Set(['quarantine', '.relight', '.staging']);

/**
 * Tensor files under the given paths, newest first: after a crash those are the doubtful ones. A path that is a file is
 * itself, with no tree to remember in. Links to directories are not followed. Throws MissingPath, UnreadableDirectory.
 */
export function findFiles(paths: readonly string[]): {files: Found[]; directories: string[]} {
	const files = new Map<string, Found>();
	const directories: string[] = [];
	for (const path of paths) {
		const stat = statSync(path, {throwIfNoEntry: false});
		if (!stat) throw new MissingPath(`${path}: no such file or directory`);
		if (stat.isDirectory()) {
			directories.push(path);
			walk(path, treeOf(path), files);
		} else add(files, path, treeOf(dirname(path)));
	}
	const newestFirst = [...files.values()].sort((one, other) => other.identity.mtimeMs - one.identity.mtimeMs);
	return {files: newestFirst, directories};
}

const GROUP = /^rows_(\d+)-\d+$/;

/** A group directory is a part of its tree. */
export const treeOf = (directory: string): string =>
	GROUP.test(basename(resolve(directory))) ? dirname(resolve(directory)) : directory;

function walk(directory: string, tree: string, files: Map<string, Found>): void {
	let entries: Dirent[];
	try {
		entries = readdirSync(directory, {withFileTypes: true});
	} catch (error) {
		const code = error instanceof Error && 'code' in error ? error.code : error;
		throw new UnreadableDirectory(`${directory}: cannot be read (${code})`);
	}
	for (const entry of entries) {
		const path = join(directory, entry.name);
		if (entry.isDirectory()) {
			if (!SKIPPED.has(entry.name)) walk(path, tree, files);
		} else if (isTensorFile(entry.name)) add(files, path, tree);
	}
}

function add(files: Map<string, Found>, path: string, tree: string): void {
	// Gone since it was listed: no file to judge.
	const stat = statSync(path, {throwIfNoEntry: false});
	if (!stat?.isFile()) return;
	files.set(path, {path, tree, identity: {bytes: stat.size, mtimeMs: stat.mtimeMs, inode: stat.ino}});
}

/** Indices missing between the first that can be and the last that is there, or `records - 1`. Ends included. */
export function holesIn(present: ReadonlySet<number>, from: number, records: number | null): [number, number][] {
	const holes: [number, number][] = [];
	const sorted = [...present].filter(index => index >= from).sort((one, other) => one - other);
	let next = from;
	for (const index of sorted) {
		if (index > next) holes.push([next, index - 1]);
		next = index + 1;
	}
	if (records !== null && next < records) holes.push([next, records - 1]);
	return holes;
}

/** The first index that directories can hold: a group `rows_4000-6000` given by itself starts at 4000. */
export function firstIndex(directories: readonly string[]): number {
	const starts = directories.map(each => Number(GROUP.exec(basename(resolve(each)))?.[1] ?? 0));
	return starts.length > 0 ? Math.min(...starts) : 0;
}
