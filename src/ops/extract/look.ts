import {closeSync, fstatSync, openSync} from 'node:fs';
import {type RangeScan, scanRange} from '../tensor/scan.ts';
import {bufferSource, fileSource, type Source} from '../tensor/source.ts';

/** What one pass over the bf16 rows of a state tells. */
export type Look = Pick<RangeScan, 'crc' | 'nonFinite'>;

/** Each state is looked at once, when it is read at the latest: nobody writes to it after that. */
const looks = new WeakMap<Buffer, Look>();

/** Memory that was read into before: fresh memory costs more than reading into it. The states of a few samples. */
const MOST_SPARE = 32;
const spare: Buffer[] = [];
const memories = new WeakMap<Buffer, Buffer>();

/** To be used again for other rows: only once nobody reads these any more. */
export function giveBack(rows: Buffer): void {
	const memory = memories.get(rows);
	memories.delete(rows);
	if (memory && spare.length < MOST_SPARE) spare.push(memory);
}

function memoryFor(bytes: number): Buffer {
	const at = spare.findIndex(({length}) => length >= bytes && length <= 4 * bytes);
	const [memory = Buffer.allocUnsafeSlow(Math.ceil(bytes * 1.25))] = at < 0 ? [] : spare.splice(at, 1);
	const rows = memory.subarray(0, bytes);
	memories.set(rows, memory);
	return rows;
}

/** All of a file of rows. Looked at block by block while it is read: three passes over memory would take three times as long. */
export function readRows(path: string): Buffer {
	const fd = openSync(path, 'r');
	try {
		const rows = memoryFor(fstatSync(fd).size);
		looks.set(rows, lookInto(keptIn(rows, fileSource(fd, rows.length))));
		return rows;
	} finally {
		closeSync(fd);
	}
}

export function lookAt(rows: Buffer): Look {
	const look = looks.get(rows) ?? lookInto(bufferSource(rows));
	looks.set(rows, look);
	return look;
}

/** The sum of bytes that were looked at; null of others. */
export const knownSum = (bytes: Buffer): number | null => looks.get(bytes)?.crc ?? null;

function lookInto(rows: Source): Look {
	const range = {name: 'rows', bytes: rows.size, offset: null, crc: null, open: () => rows};
	const {crc, nonFinite} = scanRange(range, 'BF16', () => true);
	return {crc, nonFinite};
}

/** A source whose bytes are kept as they are read. */
const keptIn = (kept: Buffer, source: Source): Source => ({
	size: source.size,
	read: (offset, length) => source.read(offset, length),
	readInto(target, offset) {
		source.readInto(target, offset);
		kept.set(target, offset);
	},
});
