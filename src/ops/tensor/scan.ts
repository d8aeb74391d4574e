import type {DataRange} from './container.ts';
import {crc32} from './crc.ts';
import {type Dtype, ITEM_BYTES} from './dtype.ts';
import {firstNonFinite, floatTest, lanesOf} from './non-finite.ts';

/** What one pass over a range saw. */
export type RangeScan = {
	readonly crc: number;
	/** The first element that is NaN or infinite, of those that count. */
	readonly nonFinite: number | null;
	/** Pages of 4096 bytes, as they lie in the file, that hold nothing but zeros; and the first one's byte in the range. */
	readonly zeroPages: number;
	readonly firstZeroPage: number | null;
	/** Nothing but zeros at all. */
	readonly allZero: boolean;
};

const PAGE = 4096;
/** With twice as much the second look at it comes from farther than the processor's own cache: a twelfth slower. */
const BLOCK = 512 * 1024;
/** Room behind a block, so that its end can be filled up to a multiple of 64. */
const test = floatTest(BLOCK + PAGE);
const bytes = new Uint8Array(test.memory);

/**
 * Reads a range once: checksum, zero pages and, with a `dtype` of floats, the first element that is not finite among those
 * that `counts` (elements outside every tensor do not). Blocks stay in the processor's cache between the three.
 */
export function scanRange(range: DataRange, dtype: Dtype | null, counts: (element: number) => boolean): RangeScan {
	const lanes = dtype === null ? null : lanesOf(dtype);
	const size = dtype === null ? 1 : ITEM_BYTES[dtype];
	const source = range.open();
	// Pages of the file, unless elements lie across their borders (a safetensors header without padding).
	const phase = range.offset !== null && range.offset % size === 0 ? range.offset % PAGE : 0;
	let crc = 0;
	let nonFinite: number | null = null;
	let zeroPages = 0;
	let firstZeroPage: number | null = null;
	let allZero = true;
	for (let at = 0; at < range.bytes; ) {
		const length = Math.min(BLOCK - ((at + phase) % PAGE), range.bytes - at);
		source.readInto(bytes.subarray(0, length), at);
		bytes.fill(0, length, length + 64);
		crc = crc32(Buffer.from(test.memory, 0, length), crc);
		const start = at;
		if (lanes && nonFinite === null && test.any(0, Math.ceil(length / 64) * 64, lanes)) {
			const visible = (byte: number): boolean => counts(Math.floor((start + byte) / size));
			const byte = firstNonFinite(test.memory, 0, length, lanes, visible);
			if (byte !== null) nonFinite = Math.floor((at + byte) / size);
		}
		const firstPage = (PAGE - ((at + phase) % PAGE)) % PAGE;
		for (let page = zeroPage(firstPage, length); page !== null; page = zeroPage(page + PAGE, length)) {
			firstZeroPage ??= at + page;
			zeroPages++;
		}
		if (allZero) allZero = isZero(0, length);
		at += length;
	}
	return {crc, nonFinite, zeroPages, firstZeroPage, allZero};
}

/**
 * The next page of zeros. A function of its own: as a loop among the rest it was compiled anew with all of that, 15 ms of
 * CPU, and thrown away again for every other range.
 */
function zeroPage(from: number, to: number): number | null {
	for (let page = from; page + PAGE <= to; page += PAGE)
		if (bytes[page] === 0 && isZero(page, page + PAGE)) return page;
	return null;
}

function isZero(from: number, to: number): boolean {
	for (let at = from; at < to; at++) if (bytes[at] !== 0) return false;
	return true;
}
