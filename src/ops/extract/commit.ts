import {
	closeSync,
	existsSync,
	fdatasyncSync,
	fsyncSync,
	mkdirSync,
	openSync,
	readdirSync,
	renameSync,
	writeFileSync,
	writeSync,
	writevSync,
} from 'node:fs';
import {basename, dirname} from 'node:path';

/**
 * Puts a file in place so that no moment of it looks finished when it is not: temporary in the same directory, all bytes,
 * fsync, rename, fsync of the directory. Throws what the file system says; the temporary then stays, under its own name.
 */
export function commitFile(path: string, pieces: readonly Buffer[]): number {
	const directory = dirname(path);
	makeDirectory(directory);
	const temporary = `${directory}/.${basename(path)}.${process.pid}.tmp`;
	const fd = openSync(temporary, 'wx', 0o644);
	let bytes = 0;
	try {
		bytes = writeAll(fd, pieces);
		fsyncSync(fd);
	} finally {
		closeSync(fd);
	}
	renameSync(temporary, path);
	syncDirectory(directory);
	return bytes;
}

function writeAll(fd: number, pieces: readonly Buffer[]): number {
	const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
	let written = writevSync(fd, [...pieces]);
	if (written === total) return total;
	// A short write: go on where it stopped.
	let skip = written;
	for (const piece of pieces) {
		if (skip >= piece.length) {
			skip -= piece.length;
			continue;
		}
		for (let at = skip; at < piece.length; ) {
			const got = writeSync(fd, piece, at, piece.length - at);
			at += got;
			written += got;
		}
		skip = 0;
	}
	return written;
}

function makeDirectory(directory: string): void {
	if (existsSync(directory)) return;
	mkdirSync(directory, {recursive: true});
	syncDirectory(dirname(directory));
}

function syncDirectory(directory: string): void {
	const fd = openSync(directory, 'r');
	try {
		fsyncSync(fd);
	} finally {
		closeSync(fd);
	}
}

/** Append-only record of what was stored; a line is on the disk before `add` returns. A torn last line is to be ignored. */
export class Journal {
	private readonly fd: number;

	constructor(path: string) {
		this.fd = openSync(path, 'a', 0o644);
	}

	add(entry: Readonly<Record<string, unknown>>): void {
		writeSync(this.fd, `${JSON.stringify(entry)}\n`);
		fdatasyncSync(this.fd);
	}

	close(): void {
		closeSync(this.fd);
	}
}

/** Moves a suspect aside with a note beside it. Nothing is deleted; the new name is none that a reader of data takes up. */
export function quarantine(output: string, path: string, reason: string): string {
	const directory = `${output}/quarantine`;
	makeDirectory(directory);
	const base = `${directory}/${basename(path).replace(/^\./, '')}.${Date.now()}`;
	let place = `${base}.bad`;
	for (let turn = 1; existsSync(place); turn++) place = `${base}-${turn}.bad`;
	writeFileSync(`${place}.note.json`, `${JSON.stringify({from: path, reason, at: new Date().toISOString()})}\n`);
	renameSync(path, place);
	return place;
}

/** Temporaries that dead writers left in the group directories. Only to be asked under the lock. */
export function leftTemporaries(output: string): string[] {
	if (!existsSync(output)) return [];
	return readdirSync(output, {withFileTypes: true})
		.filter(entry => entry.isDirectory() && entry.name.startsWith('rows_'))
		.flatMap(entry =>
			readdirSync(`${output}/${entry.name}`)
				.filter(name => /^\.data_\d+\..*\.tmp$/.test(name))
				.map(name => `${output}/${entry.name}/${name}`),
		);
}
