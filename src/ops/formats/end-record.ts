/** Bytes of the end record of a zip archive without a comment: what every torch file ends with. */
export const END_RECORD_BYTES = 22;
/** Zip64 end record and its locator, which newer writers put between directory and end record. */
const ZIP64_BYTES = 76;
const BEYOND_32_BITS = 0xffffffff;

/**
 * What is wrong with the end of a torch file, from its last 22 bytes (one character per byte) and its size; null when an end
 * record is there and its directory ends where it should. A zero-filled or cut tail has none. Source: pt-format;
 * fixtures/extraction.
 */
export function zipEndTrouble(tail: string, size: number): string | null {
	if (tail.length < END_RECORD_BYTES) return 'too short for an end record';
	const bytes = Buffer.from(tail.slice(-END_RECORD_BYTES), 'latin1');
	if (bytes.toString('latin1', 0, 4) !== 'PK\u0005\u0006') return 'no end record: cut off, or zeros after a crash';
	const directoryBytes = bytes.readUInt32LE(12);
	const directoryAt = bytes.readUInt32LE(16);
	if (directoryBytes === BEYOND_32_BITS || directoryAt === BEYOND_32_BITS) return null;
	const rest = size - END_RECORD_BYTES - directoryAt - directoryBytes;
	return rest === 0 || rest === ZIP64_BYTES ? null : 'end record does not fit the size';
}

/** The same for safetensors, from the first bytes: 8 bytes of length, a JSON header, and the data that it promises. */
export function safetensorsTrouble(head: string, size: number): string | null {
	const bytes = Buffer.from(head, 'latin1');
	if (bytes.length < 8) return 'too short for a header';
	const length = Number(bytes.readBigUInt64LE(0));
	if (length > size - 8) return 'header is cut off';
	if (length > bytes.length - 8) return 'header is too long to be one of ours';
	const ends = [...bytes.toString('utf8', 8, 8 + length).matchAll(/"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]/g)];
	if (ends.length === 0) return 'header names no tensor';
	const end = Math.max(...ends.map(match => Number(match[1])));
	return 8 + length + end === size ? null : 'size is not what its header says';
}
