import {closeSync, fstatSync, openSync} from 'node:fs';
import {type RangeScan, scanRange} from '../tensor/scan.ts';
import {bufferSource, fileSource, type Source} from '../tensor/source.ts';

/** What one pass over the bf16 rows of a state tells. */
export type Look = Pick<RangeScan, 'crc' | 'nonFinite'>;

/** Each state is looked at once, when it is read at the latest: nobody writes to it after that. */
const looks = new WeakMap<Buffer, Look>();

/** All of a file of rows. Looked at block by block while it is read: three passes over memory would take three times as long. */
export function readRows(path: string): Buffer {
	const fd = openSync(path, 'r');
	try {
		const rows = Buffer.allocUnsafeSlow(fstatSync(fd).size);
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
	...source,
	readInto(target, offset) {
		source.readInto(target, offset);
		kept.set(target, offset);
	},
});
