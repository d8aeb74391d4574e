import {fstatSync, readSync} from 'node:fs';
import {DamagedFile} from './damage.ts';

/**
 * Bytes that can be read at any place: an open file, or a buffer. Classes, because a look at a file makes several of them:
 * functions made anew for each cost more than its system calls.
 */
export type Source = {
	readonly size: number;
	/** Fills `target` from `offset` on, or throws DamagedFile. */
	readInto(target: Uint8Array, offset: number): void;
	/** Exactly `length` bytes, or DamagedFile. Not to be written to. */
	read(offset: number, length: number): Buffer;
};

/** An open file. `size` is in bytes; what the file grows by later is not seen. */
export const fileSource = (fd: number, size = fstatSync(fd).size): Source => new OpenFile(fd, size);

export const bufferSource = (bytes: Buffer): Source => new Bytes(bytes);

/** A part of another source. */
export const partOf = (source: Source, from: number, size: number): Source => new Part(source, from, size);

const WINDOW = 4096;

/** Room for the head and the tail of a file: of one at a time. */
export const windowRoom = (): Buffer => Buffer.allocUnsafeSlow(2 * WINDOW);

/**
 * The same bytes, with head and tail read once, when they are first asked for: most of a file's structure lies there. One
 * that has them already is given back.
 */
export const windowed = (source: Source, room: Buffer = Buffer.allocUnsafe(2 * WINDOW)): Source =>
	source instanceof Windowed ? source : new Windowed(source, room);

class OpenFile implements Source {
	constructor(
		private readonly fd: number,
		readonly size: number,
	) {}

	readInto(target: Uint8Array, offset: number): void {
		for (let done = 0; done < target.length; ) {
			const got = readSync(this.fd, target, done, target.length - done, offset + done);
			if (got === 0) throw new DamagedFile(`ends ${target.length - done} bytes early`, 'cut off');
			done += got;
		}
	}

	read(offset: number, length: number): Buffer {
		checkRange(offset, length, this.size);
		const bytes = Buffer.allocUnsafe(length);
		this.readInto(bytes, offset);
		return bytes;
	}
}

class Bytes implements Source {
	constructor(private readonly bytes: Buffer) {}

	get size(): number {
		return this.bytes.length;
	}

	readInto(target: Uint8Array, offset: number): void {
		target.set(this.read(offset, target.length));
	}

	read(offset: number, length: number): Buffer {
		checkRange(offset, length, this.bytes.length);
		return this.bytes.subarray(offset, offset + length);
	}
}

class Part implements Source {
	constructor(
		private readonly source: Source,
		private readonly from: number,
		readonly size: number,
	) {}

	readInto(target: Uint8Array, offset: number): void {
		checkRange(offset, target.length, this.size);
		this.source.readInto(target, this.from + offset);
	}

	read(offset: number, length: number): Buffer {
		checkRange(offset, length, this.size);
		return this.source.read(this.from + offset, length);
	}
}

class Windowed implements Source {
	readonly size: number;
	private readonly tailFrom: number;
	private head: Buffer | null = null;
	private tail: Buffer | null = null;

	constructor(
		private readonly source: Source,
		private readonly room: Buffer,
	) {
		this.size = source.size;
		this.tailFrom = Math.max(0, source.size - WINDOW);
	}

	readInto(target: Uint8Array, offset: number): void {
		this.source.readInto(target, offset);
	}

	read(offset: number, length: number): Buffer {
		if (offset >= 0 && offset + length <= Math.min(WINDOW, this.size)) {
			this.head ??= this.window(0, 0, Math.min(WINDOW, this.size));
			return this.head.subarray(offset, offset + length);
		}
		if (offset >= this.tailFrom && offset + length <= this.size) {
			this.tail ??= this.window(WINDOW, this.tailFrom, this.size - this.tailFrom);
			return this.tail.subarray(offset - this.tailFrom, offset - this.tailFrom + length);
		}
		return this.source.read(offset, length);
	}

	private window(place: number, offset: number, length: number): Buffer {
		const window = this.room.subarray(place, place + length);
		this.source.readInto(window, offset);
		return window;
	}
}

function checkRange(offset: number, length: number, size: number): void {
	if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0)
		throw new DamagedFile('names a place that cannot be');
	if (offset + length > size) throw new DamagedFile(`ends ${offset + length - size} bytes early`, 'cut off');
}
