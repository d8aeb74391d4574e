import {DamagedFile} from './damage.ts';
import type {Source} from './source.ts';
import {safe, wideValues, type ZipEntry} from './zip-directory.ts';

const LIMIT = 0xffffffff;

/** Where an entry's data is and where the entry ends, once header and descriptor agree with the directory. */
export function placeEntry(source: Source, entry: ZipEntry): {dataOffset: number; end: number} {
	const {name, headerOffset} = entry;
	const head = source.read(headerOffset, 30);
	if (head.readUInt32LE(0) !== 0x04034b50) throw new DamagedFile(`header of ${name} is missing`);
	const nameBytes = head.readUInt16LE(26);
	const extraBytes = head.readUInt16LE(28);
	const rest = source.read(headerOffset + 30, nameBytes + extraBytes);
	if (rest.toString('utf8', 0, nameBytes) !== name) throw new DamagedFile(`header of ${name} has another name`);
	if (head.readUInt16LE(6) !== entry.flags || head.readUInt16LE(8) !== entry.method)
		throw new DamagedFile(`header of ${name} disagrees with the directory`);
	const dataOffset = headerOffset + 30 + nameBytes + extraBytes;
	const behind = dataOffset + entry.packed;
	const described = (entry.flags & 8) !== 0;
	checkSizes(head, rest.subarray(nameBytes), entry, described);
	return {dataOffset, end: described ? behind + descriptorBytes(source, entry, behind) : behind};
}

/** With a descriptor the header's own fields are 0 (torch, streams) or right already; without, they must be right. */
function checkSizes(head: Buffer, extra: Buffer, entry: ZipEntry, described: boolean): void {
	const crc = head.readUInt32LE(14);
	const [bytes, packed] = wideValues(extra, [head.readUInt32LE(22), head.readUInt32LE(18)]);
	const right = crc === entry.crc && bytes === entry.bytes && packed === entry.packed;
	// In torch's own zip64 headers the packed size is 0.
	const open = crc === 0 && packed === 0 && (bytes === 0 || bytes === entry.bytes);
	if (!right && !(described && open)) throw new DamagedFile(`header of ${entry.name} disagrees with the directory`);
}

function descriptorBytes(source: Source, entry: ZipEntry, at: number): number {
	const wide = entry.bytes >= LIMIT || entry.packed >= LIMIT || entry.headerOffset >= LIMIT;
	const text = source.read(at, wide ? 24 : 16);
	const packed = wide ? safe(text.readBigUInt64LE(8)) : text.readUInt32LE(8);
	const bytes = wide ? safe(text.readBigUInt64LE(16)) : text.readUInt32LE(12);
	if (text.readUInt32LE(0) !== 0x08074b50) throw new DamagedFile(`descriptor of ${entry.name} is missing`);
	if (text.readUInt32LE(4) !== entry.crc) throw new DamagedFile(`two checksums of ${entry.name} disagree`);
	if (packed !== entry.packed || bytes !== entry.bytes) throw new DamagedFile(`two sizes of ${entry.name} disagree`);
	return text.length;
}
