import {fstatSync} from 'node:fs';
import {inflateRawSync} from 'node:zlib';
import {crc32} from './crc.ts';
import {DamagedFile, UnsupportedFile} from './damage.ts';
import {bufferSource, fileSource, partOf, type Source} from './source.ts';
import {
	ALIGNMENT,
	directory,
	MOST_DESCRIPTOR_BYTES,
	type PlacedItem,
	planZip,
	writeDescriptor,
	writeLocalHeader,
	type ZipPlan,
} from './zip.ts';
import {endsWithRecord, readDirectory, type ZipDirectory, type ZipEntry} from './zip-directory.ts';
import {placeEntry} from './zip-frames.ts';

export {DamagedFile} from './damage.ts';

/** An entry with the place of its data in the file. */
export type PlacedEntry = ZipEntry & {readonly dataOffset: number};

export type ZipContents = {
	readonly entries: readonly PlacedEntry[];
	/** Every byte that is not data is as torch.save writes it. */
	readonly asWritten: boolean;
	/** torch can be told to write no checksums: then all of them are 0 and say nothing. */
	readonly checksums: boolean;
};

const MAX_INFLATED_BYTES = 256 * 1024 * 1024;

/** Whether a file ends with an end record. */
export const endRecordPresent = (fd: number, bytes = fstatSync(fd).size): boolean =>
	endsWithRecord(fileSource(fd, bytes));

/**
 * Entries of a zip, in directory order, each framed as its directory says with nothing between them. A file of torch.save
 * is compared with what its directory makes again, so a flipped bit outside the data is found; others are read field by
 * field. Data itself is not read. Throws DamagedFile.
 */
export function readZip(source: Source): ZipContents {
	const found = readDirectory(source);
	const {entries} = found;
	const checksums = entries.some(entry => entry.crc !== 0) || entries.every(entry => entry.bytes === 0);
	const plan = planZip(entries, alignmentOf(source, entries));
	if (isAsWritten(source, found, plan)) {
		const placed = entries.map((entry, at) => placedAt(entry, plan.items[at]?.dataOffset ?? 0));
		return {entries: placed, asWritten: true, checksums};
	}
	const placed: PlacedEntry[] = [];
	let cursor = 0;
	for (const entry of [...entries].sort((one, other) => one.headerOffset - other.headerOffset)) {
		if (entry.headerOffset !== cursor) throw new DamagedFile(`${entry.name} does not start where the last entry ends`);
		const {dataOffset, end} = placeEntry(source, entry);
		placed.push(placedAt(entry, dataOffset));
		cursor = end;
	}
	if (cursor !== found.offset) throw new DamagedFile('bytes between the last entry and the directory');
	const order = new Map(entries.map(({name}, at) => [name, at]));
	placed.sort((one, other) => (order.get(one.name) ?? 0) - (order.get(other.name) ?? 0));
	return {entries: placed, asWritten: false, checksums};
}

/** Spelled out: a spread of each entry is a twentieth of a look at a file. */
function placedAt(entry: ZipEntry, dataOffset: number): PlacedEntry {
	const {name, flags, method, crc, packed, bytes, headerOffset} = entry;
	return {name, flags, method, crc, packed, bytes, headerOffset, dataOffset};
}

/** torch >= 2.6 says its alignment in an entry. */
function alignmentOf(source: Source, entries: readonly ZipEntry[]): number {
	const entry = entries.find(({name}) => name.endsWith('/.storage_alignment'));
	if (!entry || entry.bytes === 0 || entry.bytes > 8 || entry.method !== 0) return ALIGNMENT;
	const {dataOffset} = placeEntry(source, entry);
	const value = Number(source.read(dataOffset, entry.bytes).toString('latin1'));
	return Number.isSafeInteger(value) && value > 0 && value <= 65_536 ? value : ALIGNMENT;
}

function isAsWritten(source: Source, {entries, text, offset}: ZipDirectory, plan: ZipPlan): boolean {
	const crcs = entries.map(entry => entry.crc);
	if (plan.bytes !== source.size || plan.directoryOffset !== offset || !text.equals(directory(plan, crcs)))
		return false;
	const isFrame = (from: number, frame: Buffer, length: number): boolean =>
		source.read(from, length).compare(frame, 0, length) === 0;
	let from = 0;
	let before: PlacedItem | null = null;
	for (const [at, item] of plan.items.entries()) {
		const frame = roomFor(MOST_DESCRIPTOR_BYTES + item.dataOffset - item.headerOffset);
		const behind = before ? writeDescriptor(frame, 0, before, crcs[at - 1] ?? 0) : 0;
		if (!isFrame(from, frame, writeLocalHeader(frame, behind, item))) return false;
		from = item.dataOffset + item.bytes;
		before = item;
	}
	return before === null || isFrame(from, room, writeDescriptor(room, 0, before, crcs.at(-1) ?? 0));
}

/** Frames are made here, one after the other, and compared: an allocation for each costs more than that. */
const room = Buffer.allocUnsafeSlow(4096);

const roomFor = (bytes: number): Buffer => (bytes <= room.length ? room : Buffer.allocUnsafe(bytes));

/** Data of an entry as it was before packing. Inflated whole, so bounded. */
export function entrySource(source: Source, entry: PlacedEntry): Source {
	if (entry.method === 0) return partOf(source, entry.dataOffset, entry.bytes);
	if (entry.bytes > MAX_INFLATED_BYTES) throw new UnsupportedFile('deflated and large');
	const packed = source.read(entry.dataOffset, entry.packed);
	try {
		const bytes = inflateRawSync(packed, {maxOutputLength: Math.max(entry.bytes, 1)});
		if (bytes.length === entry.bytes) return bufferSource(bytes);
	} catch {
		// Said below: whatever zlib stumbled over, the entry does not hold what it says.
	}
	throw new DamagedFile(`${entry.name} does not inflate to its size`, 'checksum', entry.name);
}

/** Data of one entry, with its checksum compared where there are checksums. */
export function readEntry(
	source: Source,
	{checksums}: ZipContents,
	entry: PlacedEntry,
	maxBytes = Number.MAX_SAFE_INTEGER,
): Buffer {
	if (entry.bytes > maxBytes) throw new DamagedFile(`${entry.name} is over ${maxBytes} bytes`, 'pickle');
	const data = entrySource(source, entry).read(0, entry.bytes);
	if (checksums && crc32(data) !== entry.crc) throw wrongChecksum(entry.name);
	return data;
}

export const wrongChecksum = (name: string): DamagedFile =>
	new DamagedFile(`checksum of ${name.slice(name.indexOf('/') + 1)} is wrong`, 'checksum', name);
