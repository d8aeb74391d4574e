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
	/** What stands between the data and that: 0, 16, or 24 with sizes of 64 bits. */
	readonly descriptorBytes: number;
};

const LIMIT = 0xffffffff;
export const ALIGNMENT = 64;
const TAIL_BYTES = 56 + 20 + 22;
export const MOST_DESCRIPTOR_BYTES = 24;

const EMPTY = Buffer.alloc(0);

const clamp = (value: number): number => Math.min(value, LIMIT);

/** A number of 64 bits, as low and high half: a BigInt for each is most of what a directory costs. */
function writeWide(target: Buffer, value: number, at: number): void {
	target.writeUInt32LE(value % 2 ** 32, at);
	target.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

function zip64Bytes(bytes: number, headerOffset: number): number {
	const fields = (bytes >= LIMIT ? 2 : 0) + (headerOffset >= LIMIT ? 1 : 0);
	return fields === 0 ? 0 : 4 + fields * 8;
}

function writeZip64(target: Buffer, at: number, {bytes, headerOffset}: PlacedItem, compressed: number): number {
	const length = zip64Bytes(bytes, headerOffset);
	if (length === 0) return 0;
	target.writeUInt16LE(1, at);
	target.writeUInt16LE(length - 4, at + 2);
	if (bytes >= LIMIT) {
		writeWide(target, bytes, at + 4);
		writeWide(target, compressed, at + 12);
	}
	if (headerOffset >= LIMIT) writeWide(target, headerOffset, at + length - 8);
	return length;
}

/** Places the entries in the order given, their data at multiples of `alignment`. Sizes in bytes, safe beyond 4 GiB. */
export function planZip(items: readonly ZipItem[], alignment = ALIGNMENT): ZipPlan {
	const placed: PlacedItem[] = [];
	let cursor = 0;
	let directoryBytes = 0;
	for (const {name, bytes} of items) {
		const nameBytes = Buffer.byteLength(name);
		const extra = zip64Bytes(bytes, cursor);
		const dataOffset = Math.ceil((cursor + 30 + nameBytes + extra + 4) / alignment) * alignment;
		const descriptorBytes = bytes === 0 ? 0 : extra > 0 ? MOST_DESCRIPTOR_BYTES : 16;
		const end = dataOffset + bytes + descriptorBytes;
		placed.push({name, bytes, headerOffset: cursor, dataOffset, end, descriptorBytes});
		directoryBytes += 46 + nameBytes + extra;
		cursor = end;
	}
	return {items: placed, directoryOffset: cursor, bytes: cursor + directoryBytes + TAIL_BYTES};
}

/** Everything from the entry's start to its data. */
export function localHeader(item: PlacedItem): Buffer {
	const header = Buffer.allocUnsafe(item.dataOffset - item.headerOffset);
	writeLocalHeader(header, 0, item);
	return header;
}

/** The same into a target that has the room; gives back where it ends. */
export function writeLocalHeader(target: Buffer, at: number, item: PlacedItem): number {
	const end = at + item.dataOffset - item.headerOffset;
	target.fill(0, at, at + 30);
	target.writeUInt32LE(0x04034b50, at);
	target.writeUInt16LE(flagsOf(item), at + 6);
	const nameBytes = target.write(item.name, at + 30);
	target.writeUInt16LE(nameBytes, at + 26);
	target.writeUInt16LE(end - at - 30 - nameBytes, at + 28);
	const padding = at + 30 + nameBytes + writeZip64(target, at + 30 + nameBytes, item, 0);
	target.write('FB', padding, 'latin1');
	target.writeUInt16LE(end - padding - 4, padding + 2);
	target.fill(0x5a, padding + 4, end);
	return end;
}

const flagsOf = (item: ZipItem): number => (item.bytes === 0 ? 0x0800 : 0x0808);

/** What stands behind the data; empty for an entry without data. */
export function descriptor(item: PlacedItem, crc: number): Buffer {
	if (item.bytes === 0) return EMPTY;
	const text = Buffer.allocUnsafe(item.descriptorBytes);
	writeDescriptor(text, 0, item, crc);
	return text;
}

/** The same into a target that has the room; gives back where it ends. */
export function writeDescriptor(target: Buffer, at: number, {bytes, descriptorBytes}: PlacedItem, crc: number): number {
	if (descriptorBytes === 0) return at;
	target.writeUInt32LE(0x08074b50, at);
	target.writeUInt32LE(crc, at + 4);
	if (descriptorBytes === MOST_DESCRIPTOR_BYTES) {
		writeWide(target, bytes, at + 8);
		writeWide(target, bytes, at + 16);
	} else {
		target.writeUInt32LE(bytes, at + 8);
		target.writeUInt32LE(bytes, at + 12);
	}
	return at + descriptorBytes;
}

/** The directory and the three end records, one CRC per entry in the plan's order. */
export function directory(plan: ZipPlan, crcs: readonly number[]): Buffer {
	const text = Buffer.allocUnsafe(plan.bytes - plan.directoryOffset).fill(0);
	let at = 0;
	for (const [index, item] of plan.items.entries()) at = writeDirectoryEntry(text, at, item, crcs[index] ?? 0);
	writeEndRecords(text, at, plan);
	return text;
}

function writeDirectoryEntry(target: Buffer, at: number, item: PlacedItem, crc: number): number {
	target.writeUInt32LE(0x02014b50, at);
	target.writeUInt16LE(flagsOf(item), at + 8);
	target.writeUInt32LE(item.bytes === 0 ? 0 : crc, at + 16);
	target.writeUInt32LE(clamp(item.bytes), at + 20);
	target.writeUInt32LE(clamp(item.bytes), at + 24);
	const nameBytes = target.write(item.name, at + 46);
	const extra = writeZip64(target, at + 46 + nameBytes, item, item.bytes);
	target.writeUInt16LE(nameBytes, at + 28);
	target.writeUInt16LE(extra, at + 30);
	target.writeUInt32LE(clamp(item.headerOffset), at + 42);
	return at + 46 + nameBytes + extra;
}

function writeEndRecords(target: Buffer, at: number, {items, directoryOffset}: ZipPlan): void {
	const tail = target.subarray(at);
	const count = items.length;
	tail.writeUInt32LE(0x06064b50, 0);
	writeWide(tail, 44, 4);
	tail.writeUInt16LE(0x031e, 12);
	tail.writeUInt16LE(0x2d, 14);
	writeWide(tail, count, 24);
	writeWide(tail, count, 32);
	writeWide(tail, at, 40);
	writeWide(tail, directoryOffset, 48);
	tail.writeUInt32LE(0x07064b50, 56);
	writeWide(tail, directoryOffset + at, 64);
	tail.writeUInt32LE(1, 72);
	tail.writeUInt32LE(0x06054b50, 76);
	tail.writeUInt16LE(Math.min(count, 0xffff), 84);
	tail.writeUInt16LE(Math.min(count, 0xffff), 86);
	tail.writeUInt32LE(clamp(at), 88);
	tail.writeUInt32LE(clamp(directoryOffset), 92);
}
