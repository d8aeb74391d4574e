import {crc32} from 'node:zlib';
import {describe, expect, test} from 'vitest';
import type {DataRange} from '../../../src/ops/tensor/container.ts';
import type {Dtype} from '../../../src/ops/tensor/dtype.ts';
import {firstNonFinite, floatTest, lanesOf} from '../../../src/ops/tensor/non-finite.ts';
import {scanRange} from '../../../src/ops/tensor/scan.ts';
import {bufferSource} from '../../../src/ops/tensor/source.ts';

const FLOATS: readonly [Dtype, number, readonly number[]][] = [
	['F8_E4M3', 1, [0x7f, 0xff]],
	['F8_E5M2', 1, [0x7c, 0xfc, 0x7d, 0x7f]],
	['BF16', 2, [0x7f80, 0xff80, 0x7fc0, 0x7f81]],
	['F16', 2, [0x7c00, 0xfc00, 0x7e00, 0x7c01]],
	['F32', 4, [0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001]],
	['F64', 8, [0x7ff00000, 0xfff00000, 0x7ff80000]],
];

/** In its upper 32 bits. */
const LARGEST: Partial<Record<Dtype, number>> = {
	F8_E4M3: 0x7e,
	F8_E5M2: 0x7b,
	BF16: 0x7f7f,
	F16: 0x7bff,
	F32: 0x7f7fffff,
	F64: 0x7fefffff,
};

describe.each(FLOATS)('%s', (dtype, size, bad) => {
	const lanes = lanesOf(dtype);
	if (!lanes) throw new Error('a float');
	const simd = floatTest(64 * 1024);
	const loop = floatTest(64 * 1024, false);
	/** Largest finite value everywhere: one bit more in the exponent and it is none. */
	const largest = LARGEST[dtype] ?? 0;

	const filled = (memory: ArrayBuffer): DataView => {
		const view = new DataView(memory);
		for (let at = 0; at < memory.byteLength; at += size) {
			if (size === 8) view.setUint32(at, 0xffffffff, true);
			write(view, at, largest);
		}
		return view;
	};
	const write = (view: DataView, at: number, value: number): void => {
		if (size === 1) view.setUint8(at, value);
		else if (size === 2) view.setUint16(at, value, true);
		else view.setUint32(at + size - 4, value, true);
	};

	test('the largest finite number is finite, in SIMD and in the loop', () => {
		for (const each of [simd, loop]) {
			filled(each.memory);
			expect(each.any(0, 64 * 1024, lanes)).toBe(false);
		}
	});

	test('NaN and infinity are found in every lane, and only within the bounds', () => {
		for (const each of [simd, loop]) {
			const view = filled(each.memory);
			for (const [turn, value] of bad.entries()) {
				for (let at = 1024 + turn * 64; at < 1024 + turn * 64 + 64; at += size) {
					write(view, at, value);
					expect([value, at, each.any(0, 8192, lanes)]).toEqual([value, at, true]);
					expect(each.any(0, 1024, lanes) || each.any(2048, 8192, lanes)).toBe(false);
					expect(firstNonFinite(each.memory, 0, 8192, lanes)).toBe(at);
					write(view, at, largest);
				}
			}
		}
	});
});

test('every byte of the 8-bit types is finite or not as torch has it', () => {
	const finite = (dtype: Dtype): number => {
		const lanes = lanesOf(dtype);
		if (!lanes) throw new Error('a float');
		const all = Uint8Array.from({length: 256}, (_, value) => value);
		return all.filter((_, at) => firstNonFinite(all.buffer, at, at + 1, lanes) === null).length;
	};
	// e4m3fn: two NaN, no infinity. e5m2: two infinities, six NaN.
	expect([finite('F8_E4M3'), finite('F8_E5M2')]).toEqual([254, 248]);
});

test('SIMD is what runs here', () => {
	expect(floatTest(1).memory.byteLength).toBe(65_536);
	expect(floatTest(1, false).memory.byteLength).toBe(1);
});

describe('one pass', () => {
	const range = (bytes: Buffer, offset: number | null = 0): DataRange => ({
		name: 'x',
		bytes: bytes.length,
		offset,
		crc: null,
		open: () => bufferSource(bytes),
	});
	const ones = (bytes: number): Buffer => Buffer.alloc(bytes, Buffer.from([0x80, 0x3f]));

	test.each([0, 1, 2, 4_095, 4_096, 262_144, 1_048_575, 1_048_576, 1_048_578, 2_500_000])(
		'%i bytes: the sum is that of zlib',
		bytes => {
			const data = Buffer.from(Uint8Array.from({length: bytes}, (_, at) => (at * 31 + (at >> 8)) & 0xff));
			for (const offset of [0, 64, 4_032, null])
				expect(scanRange(range(data, offset), null, () => true).crc).toBe(crc32(data));
		},
	);

	test('what it saw, all of it', () => {
		const data = ones(600_000);
		data.fill(0, 300_000, 320_000);
		data.writeUInt16LE(0x7fc0, 500_002);
		data.writeUInt16LE(0x7fc0, 500_004);
		expect(scanRange(range(data, 64), 'BF16', () => true)).toEqual({
			crc: crc32(data),
			nonFinite: 250_001,
			zeroPages: 4,
			firstZeroPage: 303_040,
			allZero: false,
		});
		expect(scanRange(range(data, 64), 'BF16', element => element > 250_001).nonFinite).toBe(250_002);
		expect(scanRange(range(data, 64), 'BF16', () => false).nonFinite).toBe(null);
		expect(scanRange(range(data, 64), null, () => true).nonFinite).toBe(null);
	});

	test('pages are those of the file, also where data starts at any byte', () => {
		for (const offset of [0, 8, 1_000, 4_095]) {
			const data = ones(100_000);
			const page = Math.ceil((offset + 50_000) / 4_096) * 4_096 - offset;
			data.fill(0, page, page + 4_096);
			const seen = scanRange(range(data, offset), null, () => true);
			expect([offset, seen.zeroPages, seen.firstZeroPage]).toEqual([offset, 1, page]);
		}
	});

	test('nothing but zeros, and nearly', () => {
		const data = Buffer.alloc(300_001);
		expect(scanRange(range(data), 'BF16', () => true)).toMatchObject({allZero: true, zeroPages: 73});
		data[300_000] = 1;
		expect(scanRange(range(data), 'BF16', () => true)).toMatchObject({allZero: false, zeroPages: 73});
	});
});
