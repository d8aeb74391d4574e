import {describe, expect, it} from 'vitest';
import * as format from '../../src/ui/format.ts';

const GIB = 2 ** 30;

describe('format', () => {
	it('names the unit of bytes, always binary', () => {
		expect([0, 512, 4096, 75.8 * GIB, 12 * 1024 * GIB].map(format.bytes)).toEqual([
			'0 B',
			'512 B',
			'4.0 KiB',
			'75.8 GiB',
			'12.0 TiB',
		]);
		expect([0, 1.2 * GIB, 4096].map(format.bytesShort)).toEqual(['0B', '1.2Gi', '4.0Ki']);
		expect(format.gibOf(75.8 * GIB, 96 * GIB)).toBe('75.8/96.0');
		expect(format.bytesOf(1.2 * 1024 * GIB, 8 * 1024 * GIB)).toBe('1.2/8.0 TiB');
		expect(format.bytesOf(118 * GIB, 252 * GIB)).toBe('118/252 GiB');
	});

	it('never shows an unknown as nothing', () => {
		expect([
			format.bytes(null),
			format.bytesShort(null),
			format.gib(null),
			format.duration(null),
			format.age(null),
			format.percent(null),
			format.rate(null),
			format.count(null),
		]).toEqual(Array(8).fill('-'));
		expect(format.bytesOf(null, 8 * GIB)).toBe('?/8.0 GiB');
	});

	it('keeps two parts of a duration', () => {
		expect([400, 42_000, 252_000, 9_660_000, 273_600_000].map(format.duration)).toEqual([
			'0s',
			'42s',
			'4m12s',
			'2h41m',
			'3d04h',
		]);
		expect([600, 9_949, 12_000].map(format.age)).toEqual(['0.6s', '9.9s', '12s']);
	});

	it('does not round progress up to done', () => {
		expect(format.percentFine(0.99999)).toBe('99.9%');
		expect(format.percentFine(1)).toBe('100.0%');
	});

	it('writes rates, counts and ranges', () => {
		expect([0, 1.123, 12.34, 812].map(value => format.rate(value))).toEqual(['0.00/s', '1.12/s', '12.3/s', '812/s']);
		expect(format.rate(812, 'tok')).toBe('812 tok/s');
		expect(format.count(87_700_000)).toBe('87,700,000');
		expect([format.some(1, 'hole'), format.some(3, 'hole')]).toEqual(['1 hole', '3 holes']);
		expect(format.range(15_120_000, 18_120_000)).toBe('4h12m–5h02m');
		expect(format.range(60_000, 60_400)).toBe('1m00s');
	});
});
