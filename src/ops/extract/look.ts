import {closeSync, fstatSync, openSync} from 'node:fs';
import {crc32} from '../tensor/crc.ts';
import {firstNonFinite, lanesOf} from '../tensor/non-finite.ts';
import {type RangeScan, scanRange} from '../tensor/scan.ts';
import {bufferSource, fileSource} from '../tensor/source.ts';
import {takeRows} from './rows-memory.ts';

/** What one pass over the bf16 rows of a state tells. */
export type Look = Pick<RangeScan, 'crc' | 'nonFinite'>;

/** Each state is looked at once, when it is read at the latest: nobody writes to it after that. */
const looks = new WeakMap<Buffer, Look>();

const BF16 = lanesOf('BF16') ?? {bits: 16, exponent: 0x7f80};

/** So much is still in the processor's nearest cache when it is looked at again: with four times as much a tenth slower. */
const BLOCK_BYTES = 128 * 1024;

/**
 * All of a file of rows, looked at block by block while it is read: three passes over memory would take three times as long.
 * `place` is where the rows will lie in the file of their sample.
 */
export function readRows(path: string, place = 0): Buffer {
	const fd = openSync(path, 'r');
	try {
		const {rows, test} = takeRows(fstatSync(fd).size, place);
		const source = fileSource(fd, rows.length);
		let crc = 0;
		let nonFinite: number | null = null;
		for (let at = 0; at < rows.length; at += BLOCK_BYTES) {
			const block = rows.subarray(at, at + BLOCK_BYTES);
			source.readInto(block, at);
			crc = crc32(block, crc);
			if (nonFinite !== null || !test.any(block.byteOffset, block.byteOffset + Math.ceil(block.length / 64) * 64, BF16))
				continue;
			const byte = firstNonFinite(test.memory, block.byteOffset, block.byteOffset + block.length, BF16);
			if (byte !== null) nonFinite = (byte - rows.byteOffset) / 2;
		}
		looks.set(rows, {crc, nonFinite});
		return rows;
	} finally {
		closeSync(fd);
	}
}

export function lookAt(rows: Buffer): Look {
	const look = looks.get(rows) ?? scanned(rows);
	looks.set(rows, look);
	return look;
}

/** The sum of bytes that were looked at; null of others. */
export const knownSum = (bytes: Buffer): number | null => looks.get(bytes)?.crc ?? null;

function scanned(rows: Buffer): Look {
	const range = {name: 'rows', bytes: rows.length, offset: null, crc: null, open: () => bufferSource(rows)};
	const {crc, nonFinite} = scanRange(range, 'BF16', () => true);
	return {crc, nonFinite};
}
