import {fstatSync, readSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {
	descriptor,
	directory,
	END_BYTES,
	localHeader,
	type PlacedItem,
	planZip,
	TAIL_BYTES,
	type ZipItem,
	type ZipPlan,
} from './zip.ts';

/** Why a tensor file is not what it should be. Thrown by readers; the words are for people. */
export class DamagedFile extends Error {}

export type ZipContents = {readonly plan: ZipPlan; readonly crcs: readonly number[]};

const MAX_DIRECTORY_BYTES = 64 * 1024 * 1024;

/** Exactly `length` bytes at `offset`, or DamagedFile. */
export function readAt(fd: number, offset: number, length: number): Buffer {
	const bytes = Buffer.alloc(length);
	let done = 0;
	while (done < length) {
		const got = readSync(fd, bytes, done, length - done, offset + done);
		if (got === 0) throw new DamagedFile(`ends ${length - done} bytes early`);
		done += got;
	}
	return bytes;
}

/** Whether the last 22 bytes are an end record: one read, the cheapest sign that a writer came to its end. */
export function endRecordPresent(fd: number, bytes = fstatSync(fd).size): boolean {
	if (bytes < END_BYTES) return false;
	const end = readAt(fd, bytes - END_BYTES, END_BYTES);
	return end.readUInt32LE(0) === 0x06054b50 && end.readUInt16LE(20) === 0;
}

/**
 * Entries of a file as torch.save wrote it. All metadata is made again from (name, size, crc) and compared, so a flipped
 * bit outside the data is found; data itself is not read. Throws DamagedFile.
 */
export function readZip(fd: number): ZipContents {
	const bytes = fstatSync(fd).size;
	if (bytes < TAIL_BYTES || !endRecordPresent(fd, bytes)) throw new DamagedFile('no end record: the file is cut off');
	const tail = readAt(fd, bytes - TAIL_BYTES, TAIL_BYTES);
	if (tail.readUInt32LE(0) !== 0x06064b50) throw new DamagedFile('no zip64 end record: not written by torch.save');
	const directoryBytes = Number(tail.readBigUInt64LE(40));
	const directoryOffset = Number(tail.readBigUInt64LE(48));
	if (directoryBytes > MAX_DIRECTORY_BYTES || directoryOffset + directoryBytes + TAIL_BYTES !== bytes) {
		throw new DamagedFile('directory does not lie where the end record says');
	}
	const {items, crcs} = readDirectory(readAt(fd, directoryOffset, directoryBytes));
	const plan = planZip(items);
	if (plan.bytes !== bytes) throw new DamagedFile(`${bytes} bytes where its directory needs ${plan.bytes}`);
	if (!readAt(fd, directoryOffset, bytes - directoryOffset).equals(directory(plan, crcs))) {
		throw new DamagedFile('directory is not as written');
	}
	for (const [at, item] of plan.items.entries()) checkFrame(fd, item, crcs[at] ?? 0);
	return {plan, crcs};
}

function checkFrame(fd: number, item: PlacedItem, crc: number): void {
	const header = readAt(fd, item.headerOffset, item.dataOffset - item.headerOffset);
	if (!header.equals(localHeader(item))) throw new DamagedFile(`header of ${item.name} is not as written`);
	const behind = item.dataOffset + item.bytes;
	if (!readAt(fd, behind, item.end - behind).equals(descriptor(item, crc))) {
		throw new DamagedFile(`descriptor of ${item.name} is not as written`);
	}
}

function readDirectory(text: Buffer): {items: ZipItem[]; crcs: number[]} {
	const items: ZipItem[] = [];
	const crcs: number[] = [];
	const seen = new Set<string>();
	let at = 0;
	while (at < text.length) {
		if (at + 46 > text.length || text.readUInt32LE(at) !== 0x02014b50)
			throw new DamagedFile('directory entry is damaged');
		const nameBytes = text.readUInt16LE(at + 28);
		const extraBytes = text.readUInt16LE(at + 30);
		const next = at + 46 + nameBytes + extraBytes;
		if (next > text.length) throw new DamagedFile('directory entry is damaged');
		const name = text.toString('utf8', at + 46, at + 46 + nameBytes);
		if (seen.has(name)) throw new DamagedFile(`two entries named ${name}`);
		seen.add(name);
		let bytes = text.readUInt32LE(at + 24);
		if (bytes === 0xffffffff) {
			if (extraBytes < 12) throw new DamagedFile('directory entry is damaged');
			bytes = Number(text.readBigUInt64LE(at + 46 + nameBytes + 4));
		}
		items.push({name, bytes});
		crcs.push(text.readUInt32LE(at + 16));
		at = next;
	}
	return {items, crcs};
}

/** Data of one entry. With `check`, its CRC is computed and compared. */
export function readEntry(fd: number, zip: ZipContents, name: string, check: boolean): Buffer {
	const at = zip.plan.items.findIndex(item => item.name === name);
	const item = zip.plan.items[at];
	if (!item) throw new DamagedFile(`no entry ${name}`);
	const data = readAt(fd, item.dataOffset, item.bytes);
	if (check && crc32(data) !== zip.crcs[at]) throw new DamagedFile(`checksum of ${name} is wrong`);
	return data;
}
