import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, expect, test} from 'vitest';
import {lookAt, readRows} from '../../../src/ops/extract/look.ts';
import {giveBack, liesAs} from '../../../src/ops/extract/rows-memory.ts';
import {crc32} from '../../../src/ops/tensor/crc.ts';

const folder = mkdtempSync(join(tmpdir(), 'relight-look-'));
afterAll(() => rmSync(folder, {recursive: true}));

const KIB = 1024;
const NAN = 0x7fc0;
const INFINITY = 0xff80;

function file(
	bytes: number,
	wrong: readonly (readonly [at: number, value: number])[] = [],
): {path: string; all: Buffer} {
	const values = Uint16Array.from({length: bytes / 2}, (_, at) => 0x3c00 + (at % 509));
	for (const [at, value] of wrong) values[at] = value;
	const path = join(folder, 'rows.bin');
	const all = Buffer.from(values.buffer);
	writeFileSync(path, all);
	return {path, all};
}

test.each([0, 2, 62, 64, 66, 512 * KIB - 2, 512 * KIB, 512 * KIB + 2, 1_300_002])(
	'%i bytes are the bytes of the file, summed, with the first value that is not finite',
	bytes => {
		const last = bytes / 2 - 1;
		for (const wrong of [
			[],
			[[last, NAN]],
			[[0, INFINITY]],
			[
				[last >> 1, NAN],
				[last, INFINITY],
			],
		] as const) {
			if (bytes === 0 && wrong.length > 0) continue;
			const {path, all} = file(bytes, wrong);
			for (const place of [0, 64, 4_032, 4_096 + 192, 100]) {
				const rows = readRows(path, place);
				expect(rows.equals(all)).toBe(true);
				expect(lookAt(rows)).toEqual({crc: crc32(all), nonFinite: wrong[0]?.[0] ?? null});
				giveBack(rows);
			}
		}
	},
);

test('what other rows have left behind the end is not theirs', () => {
	const long = readRows(
		file(
			400,
			[...Array(200).keys()].map(at => [at, NAN] as const),
		).path,
	);
	giveBack(long);
	const short = readRows(file(130).path);
	expect(short.buffer).toBe(long.buffer);
	expect(lookAt(short).nonFinite).toBe(null);
	giveBack(short);
});

test('rows lie as far behind a page as they will in the file, where that can be', () => {
	const {path} = file(8_192);
	const rows = readRows(path, 10 * 4_096 + 320);
	expect(liesAs(rows, 10 * 4_096 + 320)).toBe(true);
	expect(liesAs(rows.subarray(4_000), 320 + 4_000)).toBe(true);
	expect(liesAs(rows, 384)).toBe(false);
	expect(liesAs(readRows(path, 100), 100)).toBe(false);
	expect(liesAs(Buffer.alloc(8_192), 0)).toBe(false);
});
