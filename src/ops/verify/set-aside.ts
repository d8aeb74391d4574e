import {statSync} from 'node:fs';
import {quarantine} from '../extract/commit.ts';
import {systemFiles} from '../extract/file-port.ts';
import {takeLock, thisWriter} from '../extract/lock.ts';
import type {Judged} from './verify.ts';

type Moved = readonly {readonly from: string; readonly to: string}[];

export type SetAside =
	| {readonly done: true; readonly moved: Moved; readonly left: readonly string[]}
	| {readonly done: false; readonly moved: Moved; readonly words: string};

/**
 * Moves suspects into the quarantine folder of their tree, each with a note; nothing is deleted. Files that are no longer
 * the ones that were looked at are left. Refused where another writer holds the tree. Throws what the file system says.
 */
export function setAside(files: readonly Judged[], proc = '/proc'): SetAside {
	const suspects = files.filter(({verdict}) => verdict.verdict === 'suspect');
	const moved: {from: string; to: string}[] = [];
	const left: string[] = [];
	for (const tree of new Set(suspects.map(file => file.tree))) {
		const lock = takeLock(`${tree}/.relight-writer`, thisWriter(proc), proc, false);
		if (!lock.taken) return {done: false, moved, words: lock.words};
		try {
			for (const file of suspects) {
				if (file.tree !== tree) continue;
				if (isUnchanged(file))
					moved.push({from: file.path, to: quarantine(systemFiles, tree, file.path, reasonOf(file))});
				else left.push(file.path);
			}
		} finally {
			lock.release();
		}
	}
	return {done: true, moved, left};
}

const reasonOf = ({verdict}: Judged): string =>
	verdict.verdict === 'suspect' ? `${verdict.reason}: ${verdict.words}` : verdict.verdict;

function isUnchanged({path, identity}: Judged): boolean {
	const now = statSync(path, {throwIfNoEntry: false});
	if (!now) return false;
	return now.size === identity.bytes && now.mtimeMs === identity.mtimeMs && now.ino === identity.inode;
}
