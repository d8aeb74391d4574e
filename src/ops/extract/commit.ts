import {existsSync, writeFileSync} from 'node:fs';
import {basename, dirname} from 'node:path';
import {BLOCK_BYTES, giveBlock, takeBlock} from './blocks.ts';
import {type Pieces, writeDirect} from './direct-write.ts';
import {type FileMark, type FilePort, fillAll, isFull, writeAll} from './file-port.ts';

/** A file whose bytes are all on the disk, still under its temporary name. */
export type Written = {readonly temporary: string; readonly mark: FileMark; readonly crc32: number};

/**
 * Writes and syncs a file beside its place, in the background: one piece is written while the next is made, so a piece
 * must stay as it is until the next but one is asked for. Rejects with what the file system says, or what the pieces throw;
 * the temporary then stays, except on a full disk, which needs its room back.
 */
export async function writeBeside(files: FilePort, path: string, bytes: number, pieces: Pieces): Promise<Written> {
	makeDirectory(files, dirname(path));
	const temporary = temporaryName(path);
	const fd = files.create(temporary);
	let open = true;
	try {
		const crc32 = await fill(files, fd, temporary, bytes, pieces);
		await files.settle(fd);
		const mark = files.mark(fd);
		open = false;
		files.close(fd);
		if (mark.bytes !== bytes) throw new Error(`${path}: ${mark.bytes} bytes arrived of ${bytes}`);
		return {temporary, mark, crc32};
	} catch (error) {
		if (open) closeQuietly(files, fd);
		if (isFull(error)) files.remove(temporary);
		throw error;
	}
}

/** Below this the page cache is no detour. */
const LEAST_DIRECT = 4 * BLOCK_BYTES;

async function fill(files: FilePort, fd: number, path: string, bytes: number, pieces: Pieces): Promise<number> {
	const direct = bytes < LEAST_DIRECT ? null : files.direct(path);
	const [one, other] = direct === null ? [null, null] : [takeBlock(), takeBlock()];
	try {
		if (direct === null || !one || !other) return await fillPieces(files, fd, pieces);
		return await writeDirect(files, {fd, direct}, [one, other], pieces);
	} finally {
		for (const block of [one, other]) if (block) giveBlock(block);
		if (direct !== null) closeQuietly(files, direct);
	}
}

async function fillPieces(files: FilePort, fd: number, pieces: Pieces): Promise<number> {
	let under = Promise.resolve();
	try {
		for (;;) {
			const next = pieces.next();
			await under;
			if (next.done) return next.value;
			under = fillAll(files, fd, next.value);
			// Awaited a turn later: until then its failure is nobody's.
			under.catch(() => {});
		}
	} finally {
		// Nothing may be under way when the file is closed.
		await under.catch(() => {});
	}
}

const temporaryName = (path: string): string => `${dirname(path)}/.${basename(path)}.${process.pid}.tmp`;

/**
 * Puts a file in place so that no moment of it looks finished when it is not: temporary in the same directory, all bytes,
 * fsync, rename, fsync of the directory. Throws what the file system says; the temporary then stays under its own name,
 * except on a full disk, which needs its room back.
 */
export function commitFile(files: FilePort, path: string, pieces: readonly Buffer[]): FileMark {
	const directory = dirname(path);
	makeDirectory(files, directory);
	const temporary = temporaryName(path);
	const mark = write(files, temporary, pieces);
	files.rename(temporary, path);
	files.syncDirectory(directory);
	return mark;
}

function write(files: FilePort, path: string, pieces: readonly Buffer[]): FileMark {
	const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
	const fd = files.create(path);
	let open = true;
	try {
		writeAll(files, fd, pieces);
		files.sync(fd);
		const mark = files.mark(fd);
		open = false;
		files.close(fd);
		if (mark.bytes !== total) throw new Error(`${path}: ${mark.bytes} bytes arrived of ${total}`);
		return mark;
	} catch (error) {
		if (open) closeQuietly(files, fd);
		if (isFull(error)) files.remove(path);
		throw error;
	}
}

/** The first error is the one to tell. */
function closeQuietly(files: FilePort, fd: number): void {
	try {
		files.close(fd);
	} catch {}
}

export function makeDirectory(files: FilePort, directory: string): void {
	if (files.exists(directory)) return;
	files.makeDirectory(directory);
	files.syncDirectory(dirname(directory));
}

/** Moves a suspect aside with a note beside it. Nothing is deleted; the new name is none that a reader of data takes up. */
export function quarantine(files: FilePort, output: string, path: string, reason: string): string {
	const directory = `${output}/quarantine`;
	makeDirectory(files, directory);
	const base = `${directory}/${basename(path).replace(/^\./, '')}.${Date.now()}`;
	let place = `${base}.bad`;
	for (let turn = 1; existsSync(place); turn++) place = `${base}-${turn}.bad`;
	writeFileSync(`${place}.note.json`, `${JSON.stringify({from: path, reason, at: new Date().toISOString()})}\n`);
	files.rename(path, place);
	// Else it could be back after a power cut, with a journal that knows nothing against it.
	for (const each of [dirname(path), directory]) files.syncDirectory(each);
	return place;
}
