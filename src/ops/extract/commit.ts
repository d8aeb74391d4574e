import {existsSync, readdirSync, writeFileSync} from 'node:fs';
import {basename, dirname} from 'node:path';
import {type FileMark, type FilePort, isFull, writeAll} from './file-port.ts';

/**
 * Puts a file in place so that no moment of it looks finished when it is not: temporary in the same directory, all bytes,
 * fsync, rename, fsync of the directory. Throws what the file system says; the temporary then stays under its own name,
 * except on a full disk, which needs its room back.
 */
export function commitFile(files: FilePort, path: string, pieces: readonly Buffer[]): FileMark {
	const directory = dirname(path);
	makeDirectory(files, directory);
	const temporary = `${directory}/.${basename(path)}.${process.pid}.tmp`;
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

/** Temporaries that dead writers left in the group directories. Only to be asked under the lock. */
export function leftTemporaries(output: string): string[] {
	return inGroups(output, /^\.data_\d+\..*\.tmp$/);
}

/** Sample files by name, whatever they are worth. */
export function sampleFiles(output: string): {index: number; path: string}[] {
	return inGroups(output, /^data_\d+\.pt$/).map(path => ({index: Number(/data_(\d+)\.pt$/.exec(path)?.[1]), path}));
}

function inGroups(output: string, name: RegExp): string[] {
	if (!existsSync(output)) return [];
	return readdirSync(output, {withFileTypes: true})
		.filter(entry => entry.isDirectory() && entry.name.startsWith('rows_'))
		.flatMap(entry =>
			readdirSync(`${output}/${entry.name}`)
				.filter(each => name.test(each))
				.map(each => `${output}/${entry.name}/${each}`),
		);
}
