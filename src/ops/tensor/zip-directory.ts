import {DamagedFile} from './damage.ts';
import type {Source} from './source.ts';

/** One entry as the central directory has it. Sizes and offsets in bytes. */
export type ZipEntry = {
	readonly name: string;
	readonly flags: number;
	/** 0 stored, 8 deflated. */
	readonly method: number;
	readonly crc: number;
	readonly packed: number;
	readonly bytes: number;
	readonly headerOffset: number;
};

export type ZipDirectory = {
	readonly entries: readonly ZipEntry[];
	readonly offset: number;
	/** The directory and all end records, to the end of the file. */
	readonly text: Buffer;
};

export const END_BYTES = 22;
const END = 0x06054b50;
const WIDE_END = 0x06064b50;
const WIDE_LOCATOR = 0x07064b50;
const LIMIT = 0xffffffff;
const NONE = Buffer.alloc(0);
const MAX_DIRECTORY_BYTES = 64 * 1024 * 1024;

/** Whether the last 22 bytes are an end record: one read, the cheapest sign that a writer came to its end. */
export function endsWithRecord(source: Source): boolean {
	if (source.size < END_BYTES) return false;
	const end = source.read(source.size - END_BYTES, END_BYTES);
	return end.readUInt32LE(0) === END && end.readUInt16LE(20) === 0;
}

/** The central directory of any zip without a comment, on one disk, with nothing behind it. Throws DamagedFile. */
export function readDirectory(source: Source): ZipDirectory {
	const {size} = source;
	if (!endsWithRecord(source)) throw noEnd(source);
	const end = source.read(size - END_BYTES, END_BYTES);
	const wide = wideEnd(source);
	const behind = wide ? size - 98 : size - END_BYTES;
	const count = wide ? wide.count : end.readUInt16LE(10);
	const bytes = wide ? wide.bytes : end.readUInt32LE(12);
	const offset = wide ? wide.offset : end.readUInt32LE(16);
	if (end.readUInt16LE(4) !== 0 || end.readUInt16LE(6) !== 0 || end.readUInt16LE(8) !== end.readUInt16LE(10))
		throw new DamagedFile('end record names other disks');
	const agrees = (short: number, long: number, full: number): boolean =>
		short === long || (wide !== null && short === full);
	if (!agrees(end.readUInt16LE(10), count, 0xffff) || !agrees(end.readUInt32LE(12), bytes, LIMIT))
		throw new DamagedFile('end records disagree');
	if (!agrees(end.readUInt32LE(16), offset, LIMIT)) throw new DamagedFile('end records disagree');
	if (bytes > MAX_DIRECTORY_BYTES || offset + bytes !== behind)
		throw new DamagedFile('directory does not lie where the end record says');
	const text = source.read(offset, size - offset);
	const entries = readEntries(text.subarray(0, bytes));
	if (entries.length !== count) throw new DamagedFile(`${entries.length} entries where the end record says ${count}`);
	return {entries, offset, text};
}

/** A record further up means that something was put behind a whole file; none, that the end is missing. */
function noEnd(source: Source): DamagedFile {
	const from = Math.max(0, source.size - 0x10000);
	const at = source.read(from, source.size - from).lastIndexOf('PK\x05\x06', undefined, 'latin1');
	if (at < 0) return new DamagedFile('no end record: the file is cut off', 'cut off');
	const extra = source.size - from - at - END_BYTES;
	if (extra < 0) return new DamagedFile('the end record is cut off', 'cut off');
	return new DamagedFile(`${extra} bytes after the end of the archive`, 'trailing bytes');
}

function wideEnd(source: Source): {count: number; bytes: number; offset: number} | null {
	if (source.size < 98) return null;
	const tail = source.read(source.size - 98, 76);
	if (tail.readUInt32LE(56) !== WIDE_LOCATOR) return null;
	const record = BigInt(source.size - 98);
	if (tail.readUInt32LE(0) !== WIDE_END || tail.readBigUInt64LE(4) !== 44n || tail.readBigUInt64LE(64) !== record)
		throw new DamagedFile('zip64 end record is not where its locator says');
	if (tail.readUInt32LE(60) !== 0 || tail.readUInt32LE(72) > 1 || tail.readUInt32LE(16) || tail.readUInt32LE(20))
		throw new DamagedFile('end record names other disks');
	if (tail.readBigUInt64LE(24) !== tail.readBigUInt64LE(32)) throw new DamagedFile('end record names other disks');
	return {
		count: safe(tail.readBigUInt64LE(32)),
		bytes: safe(tail.readBigUInt64LE(40)),
		offset: safe(tail.readBigUInt64LE(48)),
	};
}

export function safe(value: bigint): number {
	if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new DamagedFile('a size beyond all bounds');
	return Number(value);
}

function readEntries(text: Buffer): ZipEntry[] {
	const entries: ZipEntry[] = [];
	const seen = new Set<string>();
	for (let at = 0; at < text.length; ) {
		if (at + 46 > text.length || text.readUInt32LE(at) !== 0x02014b50)
			throw new DamagedFile('directory entry is damaged');
		const nameBytes = text.readUInt16LE(at + 28);
		const extraBytes = text.readUInt16LE(at + 30);
		const next = at + 46 + nameBytes + extraBytes + text.readUInt16LE(at + 32);
		if (next > text.length || text.readUInt16LE(at + 34) !== 0) throw new DamagedFile('directory entry is damaged');
		const name = text.toString('utf8', at + 46, at + 46 + nameBytes);
		if (seen.has(name)) throw new DamagedFile(`two entries named ${name}`);
		seen.add(name);
		const extra = extraBytes === 0 ? NONE : text.subarray(at + 46 + nameBytes, at + 46 + nameBytes + extraBytes);
		const values = wideValues(extra, [
			text.readUInt32LE(at + 24),
			text.readUInt32LE(at + 20),
			text.readUInt32LE(at + 42),
		]);
		const [bytes = 0, packed = 0, headerOffset = 0] = values;
		const flags = text.readUInt16LE(at + 8);
		const method = text.readUInt16LE(at + 10);
		checkKind(name, flags, method);
		if (method === 0 && bytes !== packed) throw new DamagedFile(`${name} is stored in a size that is not its own`);
		entries.push({name, flags, method, crc: text.readUInt32LE(at + 16), packed, bytes, headerOffset});
		at = next;
	}
	return entries;
}

function checkKind(name: string, flags: number, method: number): void {
	// Descriptor, UTF-8 and the deflate level: the rest is encryption, patches and what nobody writes.
	if (flags & ~0x080e || (method !== 0 && method !== 8)) throw new DamagedFile(`${name} is packed in an unknown way`);
}

/** Values of 32 bits, or of 64 from the extra field where they are all ones. */
export function wideValues(extra: Buffer, values: readonly number[]): number[] {
	if (!values.includes(LIMIT)) return [...values];
	for (let at = 0; at + 4 <= extra.length; ) {
		const end = at + 4 + extra.readUInt16LE(at + 2);
		if (end > extra.length) break;
		if (extra.readUInt16LE(at) === 1) {
			let from = at + 4;
			return values.map(value => {
				if (value !== LIMIT) return value;
				if (from + 8 > end) throw new DamagedFile('zip64 field is damaged');
				from += 8;
				return safe(extra.readBigUInt64LE(from - 8));
			});
		}
		at = end;
	}
	return [...values];
}
