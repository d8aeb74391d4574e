import {fstatSync, readSync} from 'node:fs';
import {DamagedFile} from './damage.ts';

/** Bytes that can be read at any place: an open file, or a buffer. */
export type Source = {
	readonly size: number;
	/** Fills `target` from `offset` on, or throws DamagedFile. */
	readInto(target: Uint8Array, offset: number): void;
	/** Exactly `length` bytes, or DamagedFile. Not to be written to. */
	read(offset: number, length: number): Buffer;
};

/** An open file. `size` is in bytes; what the file grows by later is not seen. */
export function fileSource(fd: number, size = fstatSync(fd).size): Source {
	const readInto = (target: Uint8Array, offset: number): void => {
		for (let done = 0; done < target.length; ) {
			const got = readSync(fd, target, done, target.length - done, offset + done);
			if (got === 0) throw new DamagedFile(`ends ${target.length - done} bytes early`, 'cut off');
			done += got;
		}
	};
	return {
		size,
		readInto,
		read(offset, length) {
			checkRange(offset, length, size);
			const bytes = Buffer.allocUnsafe(length);
			readInto(bytes, offset);
			return bytes;
		},
	};
}

export function bufferSource(bytes: Buffer): Source {
	return {
		size: bytes.length,
		readInto(target, offset) {
			checkRange(offset, target.length, bytes.length);
			target.set(bytes.subarray(offset, offset + target.length));
		},
		read(offset, length) {
			checkRange(offset, length, bytes.length);
			return bytes.subarray(offset, offset + length);
		},
	};
}

/** A part of another source. */
export function partOf(source: Source, from: number, size: number): Source {
	return {
		size,
		readInto(target, offset) {
			checkRange(offset, target.length, size);
			source.readInto(target, from + offset);
		},
		read(offset, length) {
			checkRange(offset, length, size);
			return source.read(from + offset, length);
		},
	};
}

const WINDOW = 4096;

/** The same bytes, with head and tail read once: most of a file's structure lies there. */
export function windowed(source: Source): Source {
	const {size} = source;
	const tailFrom = Math.max(0, size - WINDOW);
	const head = source.read(0, Math.min(WINDOW, size));
	const tail = tailFrom === 0 ? head : source.read(tailFrom, size - tailFrom);
	return {
		size,
		readInto: source.readInto,
		read(offset, length) {
			if (offset >= 0 && offset + length <= head.length) return head.subarray(offset, offset + length);
			if (offset >= tailFrom && offset + length <= size)
				return tail.subarray(offset - tailFrom, offset - tailFrom + length);
			return source.read(offset, length);
		},
	};
}

function checkRange(offset: number, length: number, size: number): void {
	if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0)
		throw new DamagedFile('names a place that cannot be');
	if (offset + length > size) throw new DamagedFile(`ends ${offset + length - size} bytes early`, 'cut off');
}
