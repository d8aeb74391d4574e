import {describe, expect, it} from 'vitest';
import {fitRow, paint, rowText, rowWidth, span, spread, themeFor, toAscii, truncateRow} from '../../src/ui/theme.ts';

describe('rows', () => {
	it('are cut over their spans with one mark', () => {
		const row = [span('abc', 'good'), span('defg', 'bad'), span('hi')];
		expect(rowText(truncateRow(row, 9))).toBe('abcdefghi');
		expect(rowText(truncateRow(row, 8))).toBe('abcdefg…');
		expect(rowText(truncateRow(row, 7))).toBe('abcdef…');
		expect(rowText(truncateRow(row, 4))).toBe('abc…');
		expect(rowText(truncateRow(row, 1))).toBe('…');
	});

	it('take exactly the cells asked for', () => {
		const row = [span('日本', 'good'), span('語x')];
		for (let cells = 1; cells < 12; cells++) expect(rowWidth(fitRow(row, cells))).toBe(cells);
	});

	it('put the right part at the end of the line', () => {
		expect(rowText(spread([span('left side of it')], [span('right')], 20))).toBe('left side of itright');
	});
});

describe('paint', () => {
	it('colours by meaning and always resets', () => {
		expect(paint([span('HUNG', 'bad'), span(' /data')], {color: true, ascii: false})).toBe(
			'\x1b[1m\x1b[31mHUNG\x1b[39m\x1b[22m /data',
		);
	});

	it('has bold and inverse only without colour', () => {
		const painted = ['dim', 'good', 'warn', 'bad', 'accent', 'title', 'inverse'].map(tone =>
			paint([span('x', tone as 'dim')], {color: false, ascii: false}),
		);
		expect(painted).toEqual([
			'x',
			'x',
			'\x1b[1mx\x1b[22m',
			'\x1b[1m\x1b[7mx\x1b[27m\x1b[22m',
			'\x1b[1mx\x1b[22m',
			'\x1b[1mx\x1b[22m',
			'\x1b[7mx\x1b[27m',
		]);
	});

	it('keeps every cell in ASCII', () => {
		expect(toAscii('━─│┌┐└┘├┤┬┴┼…–·▁▂▃▄▅▆▇█')).toBe('=-|+++++++++~-._.-=+*%#');
		expect(toAscii('日本 ü')).toBe('???? ?');
	});

	it('reads the environment', () => {
		expect(themeFor({LANG: 'en_US.UTF-8'})).toEqual({color: true, ascii: false});
		expect(themeFor({LANG: 'C', NO_COLOR: '1'})).toEqual({color: false, ascii: true});
		expect(themeFor({LANG: 'de_DE.utf8', TERM: 'linux'})).toEqual({color: true, ascii: true});
		expect(themeFor({LC_ALL: 'C', LANG: 'en_US.UTF-8'})).toEqual({color: true, ascii: true});
		expect(themeFor({LANG: 'en_US.UTF-8'}, {ascii: true}).ascii).toBe(true);
	});
});
