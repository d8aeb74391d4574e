/**
 * The zip that torch.save writes, byte for byte: entries stored, data at multiples of 64, sizes in a descriptor behind
 * the data, a zip64 end record always. The writer is deterministic, so every byte that is not data follows from
 * (name, size, crc): that gives the size of a file without its data, and a check of all metadata by comparison.
 */
export type ZipItem = {readonly name: string; readonly bytes: number};

export type ZipPlan = {
	readonly items: readonly PlacedItem[];
	readonly directoryOffset: number;
	/** Size of the whole file. */
	readonly bytes: number;
};

export type PlacedItem = ZipItem & {
	readonly headerOffset: number;
	readonly dataOffset: number;
	/** Where the next entry starts. */
	readonly end: number;
	readonly wide: boolean;
};

const LIMIT = 0xffffffff;
export const ALIGNMENT = 64;
const TAIL_BYTES = 56 + 20 + 22;

/** Zeros, out of Node's pool: a fresh allocation for each few bytes is most of what a look at a file costs. */
const blank = (bytes: number): Buffer => Buffer.allocUnsafe(bytes).fill(0);

const EMPTY = Buffer.alloc(0);

const clamp = (value: number): number => Math.min(value, LIMIT);

function zip64Fields(item: ZipItem, headerOffset: number, compressed: number): Buffer {
	if (item.bytes < LIMIT && headerOffset < LIMIT) return EMPTY;
	const values: number[] = [];
	if (item.bytes >= LIMIT) values.push(item.bytes, compressed);
	if (headerOffset >= LIMIT) values.push(headerOffset);
	const extra = blank(4 + values.length * 8);
	extra.writeUInt16LE(1, 0);
	extra.writeUInt16LE(values.length * 8, 2);
	for (const [at, value] of values.entries()) extra.writeBigUInt64LE(BigInt(value), 4 + at * 8);
	return extra;
}

/** Places the entries in the order given, their data at multiples of `alignment`. Sizes in bytes, safe beyond 4 GiB. */
export function planZip(items: readonly ZipItem[], alignment = ALIGNMENT): ZipPlan {
	const placed: PlacedItem[] = [];
	let cursor = 0;
	let directoryBytes = 0;
	for (const item of items) {
		const nameBytes = Buffer.byteLength(item.name);
		const wide = item.bytes >= LIMIT || cursor >= LIMIT;
		const start = cursor + 30 + nameBytes + zip64Fields(item, cursor, 0).length + 4;
		const dataOffset = Math.ceil(start / alignment) * alignment;
		const descriptor = item.bytes === 0 ? 0 : wide ? 24 : 16;
		const end = dataOffset + item.bytes + descriptor;
		placed.push({name: item.name, bytes: item.bytes, headerOffset: cursor, dataOffset, end, wide});
		directoryBytes += 46 + nameBytes + zip64Fields(item, cursor, item.bytes).length;
		cursor = end;
	}
	return {items: placed, directoryOffset: cursor, bytes: cursor + directoryBytes + TAIL_BYTES};
}

/** Everything from the entry's start to its data. */
export function localHeader(item: PlacedItem): Buffer {
	const name = Buffer.from(item.name);
	const wide = zip64Fields(item, item.headerOffset, 0);
	const header = Buffer.allocUnsafe(item.dataOffset - item.headerOffset).fill('Z');
	header.fill(0, 0, 30);
	header.writeUInt32LE(0x04034b50, 0);
	header.writeUInt16LE(flagsOf(item), 6);
	header.writeUInt16LE(name.length, 26);
	header.writeUInt16LE(header.length - 30 - name.length, 28);
	name.copy(header, 30);
	wide.copy(header, 30 + name.length);
	const padding = 30 + name.length + wide.length;
	header.write('FB', padding, 'latin1');
	header.writeUInt16LE(header.length - padding - 4, padding + 2);
	return header;
}

const flagsOf = (item: ZipItem): number => (item.bytes === 0 ? 0x0800 : 0x0808);

/** What stands behind the data; empty for an entry without data. */
export function descriptor(item: PlacedItem, crc: number): Buffer {
	if (item.bytes === 0) return EMPTY;
	const text = blank(item.wide ? 24 : 16);
	text.writeUInt32LE(0x08074b50, 0);
	text.writeUInt32LE(crc, 4);
	if (item.wide) {
		text.writeBigUInt64LE(BigInt(item.bytes), 8);
		text.writeBigUInt64LE(BigInt(item.bytes), 16);
	} else {
		text.writeUInt32LE(item.bytes, 8);
		text.writeUInt32LE(item.bytes, 12);
	}
	return text;
}

/** The directory and the three end records, one CRC per entry in the plan's order. */
export function directory(plan: ZipPlan, crcs: readonly number[]): Buffer {
	const parts = plan.items.map((item, at) => directoryEntry(item, crcs[at] ?? 0));
	const bytes = parts.reduce((sum, part) => sum + part.length, 0);
	return Buffer.concat([...parts, endRecords(plan.items.length, bytes, plan.directoryOffset)]);
}

function directoryEntry(item: PlacedItem, crc: number): Buffer {
	const name = Buffer.from(item.name);
	const wide = zip64Fields(item, item.headerOffset, item.bytes);
	const entry = blank(46);
	entry.writeUInt32LE(0x02014b50, 0);
	entry.writeUInt16LE(flagsOf(item), 8);
	entry.writeUInt32LE(item.bytes === 0 ? 0 : crc, 16);
	entry.writeUInt32LE(clamp(item.bytes), 20);
	entry.writeUInt32LE(clamp(item.bytes), 24);
	entry.writeUInt16LE(name.length, 28);
	entry.writeUInt16LE(wide.length, 30);
	entry.writeUInt32LE(clamp(item.headerOffset), 42);
	return Buffer.concat([entry, name, wide]);
}

function endRecords(count: number, directoryBytes: number, directoryOffset: number): Buffer {
	const tail = blank(TAIL_BYTES);
	tail.writeUInt32LE(0x06064b50, 0);
	tail.writeBigUInt64LE(44n, 4);
	tail.writeUInt16LE(0x031e, 12);
	tail.writeUInt16LE(0x2d, 14);
	tail.writeBigUInt64LE(BigInt(count), 24);
	tail.writeBigUInt64LE(BigInt(count), 32);
	tail.writeBigUInt64LE(BigInt(directoryBytes), 40);
	tail.writeBigUInt64LE(BigInt(directoryOffset), 48);
	tail.writeUInt32LE(0x07064b50, 56);
	tail.writeBigUInt64LE(BigInt(directoryOffset + directoryBytes), 64);
	tail.writeUInt32LE(1, 72);
	tail.writeUInt32LE(0x06054b50, 76);
	tail.writeUInt16LE(Math.min(count, 0xffff), 84);
	tail.writeUInt16LE(Math.min(count, 0xffff), 86);
	tail.writeUInt32LE(clamp(directoryBytes), 88);
	tail.writeUInt32LE(clamp(directoryOffset), 92);
	return tail;
}
