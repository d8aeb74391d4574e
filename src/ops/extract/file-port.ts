import {
	closeSync,
	constants,
	existsSync,
	fdatasync,
	fstatSync,
	fsync,
	fsyncSync,
	mkdirSync,
	openSync,
	renameSync,
	rmSync,
	statfsSync,
	write,
	writeSync,
	writevSync,
} from 'node:fs';
import {promisify} from 'node:util';

/** What tells one state of a file from another without reading it. */
export type FileMark = {readonly bytes: number; readonly mtimeMs: number; readonly inode: number};

/**
 * What storing needs of the file system, as a port: a test makes it fail, or cuts the power between two calls. Every call
 * throws what the system says.
 */
export type FilePort = {
	/** A new file; one that exists is an error. */
	create(path: string): number;
	append(path: string): number;
	/** May write less than it is given. */
	write(fd: number, pieces: readonly Buffer[]): number;
	/** The same in the background, behind what is there or at a place; one at a time per file. The bytes must stay as they are until it has resolved. */
	fill(fd: number, bytes: Buffer, at?: number): Promise<number>;
	/**
	 * The same file once more, for writes of whole blocks that pass the page cache: that spares a copy of every byte, and
	 * the wait for it at the end. null where the file system has no such thing.
	 */
	direct(path: string): number | null;
	/** A file that is there, to be changed in place. */
	edit(path: string): number;
	/** Writes at a place; may write less than it is given. */
	patch(fd: number, bytes: Buffer, at: number): number;
	sync(fd: number): void;
	/** Resolves when the bytes are on the disk; other calls go on meanwhile. */
	settle(fd: number): Promise<void>;
	mark(fd: number): FileMark;
	close(fd: number): void;
	rename(from: string, to: string): void;
	remove(path: string): void;
	exists(path: string): boolean;
	makeDirectory(path: string): void;
	syncDirectory(path: string): void;
	/** The same in the background. */
	settleDirectory(path: string): Promise<void>;
	/** What a user may still write there. */
	freeBytes(path: string): number;
};

const inBackground = {write: promisify(write), fdatasync: promisify(fdatasync), fsync: promisify(fsync)};

export const systemFiles: FilePort = {
	create: path => openSync(path, 'wx', 0o644),
	append: path => openSync(path, 'a', 0o644),
	write: (fd, pieces) => writevSync(fd, [...pieces]),
	async fill(fd, bytes, at) {
		return (await inBackground.write(fd, bytes, 0, bytes.length, at ?? null)).bytesWritten;
	},
	direct(path) {
		const {O_DIRECT, O_WRONLY} = constants;
		if (O_DIRECT === undefined) return null;
		try {
			return openSync(path, O_WRONLY | O_DIRECT);
		} catch {
			return null;
		}
	},
	edit: path => openSync(path, 'r+'),
	patch: (fd, bytes, at) => writeSync(fd, bytes, 0, bytes.length, at),
	sync: fsyncSync,
	settle: inBackground.fdatasync,
	mark(fd) {
		const {size, mtimeMs, ino} = fstatSync(fd);
		return {bytes: size, mtimeMs, inode: ino};
	},
	close: closeSync,
	rename: renameSync,
	remove: path => rmSync(path, {force: true}),
	exists: existsSync,
	makeDirectory(path) {
		mkdirSync(path, {recursive: true});
	},
	syncDirectory(path) {
		const fd = openSync(path, 'r');
		try {
			fsyncSync(fd);
		} finally {
			closeSync(fd);
		}
	},
	async settleDirectory(path) {
		const fd = openSync(path, 'r');
		try {
			await inBackground.fsync(fd);
		} finally {
			closeSync(fd);
		}
	},
	freeBytes(path) {
		const {bavail, bsize} = statfsSync(path);
		return bavail * bsize;
	},
};

/** All bytes, however often it takes; a writer that takes none is an error rather than a loop. */
export function writeAll(files: FilePort, fd: number, pieces: readonly Buffer[]): number {
	let left = pieces.filter(piece => piece.length > 0);
	let written = 0;
	while (left.length > 0) {
		let got = files.write(fd, left);
		if (got <= 0) throw new Error('a write took no bytes');
		written += got;
		while (left[0] && got >= left[0].length) {
			got -= left[0].length;
			left = left.slice(1);
		}
		if (left[0] && got > 0) left = [left[0].subarray(got), ...left.slice(1)];
	}
	return written;
}

/** All bytes at a place. */
export function patchAll(files: FilePort, fd: number, content: Buffer, at: number): void {
	for (let done = 0; done < content.length; ) {
		const got = files.patch(fd, content.subarray(done), at + done);
		if (got <= 0) throw new Error('a write took no bytes');
		done += got;
	}
}

/** Larger writes through the page cache are several times slower on some kernels. */
const WRITE_BYTES = 512 * 1024;

/** All bytes of one piece, in the background. */
export async function fillAll(files: FilePort, fd: number, piece: Buffer): Promise<void> {
	for (let done = 0; done < piece.length; ) {
		const got = await files.fill(fd, piece.subarray(done, done + WRITE_BYTES));
		if (got <= 0) throw new Error('a write took no bytes');
		done += got;
	}
}

const FULL = new Set(['ENOSPC', 'EDQUOT']);
/** The file system has its own idea of how such a write must lie. */
export const isMisplaced = (error: unknown): boolean => codeOf(error) === 'EINVAL';

const BROKEN = new Set(['EROFS', 'EIO', 'EACCES', 'EPERM', 'EEXIST', 'ENXIO', 'ESTALE', 'ENOTCONN', 'EMFILE']);

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

/** No room: passes when somebody makes some. */
export const isFull = (error: unknown): boolean => FULL.has(codeOf(error));

/** Storage that fails: the next sample would meet it too. */
export const isBroken = (error: unknown): boolean => BROKEN.has(codeOf(error));
