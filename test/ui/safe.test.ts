import {describe, expect, it} from 'vitest';
import {clean, fitText, truncate, width, wrap} from '../../src/ui/safe.ts';

describe('clean', () => {
	it.each([
		['plain text stays', 'vllm serve --port 8000', 'vllm serve --port 8000'],
		['a colour sequence is shown, not obeyed', '\x1b[31mred\x1b[0m', '^[[31mred^[[0m'],
		['an OSC that sets the title is shown', '\x1b]0;owned\x07', '^[]0;owned^G'],
		['C1 introducers are shown', '\u009b31m', '<U+009B>31m'],
		['a tab is one blank', 'a\tb', 'a b'],
		['line breaks cannot start a line', 'a\r\nb', 'a\\r\\nb'],
		['a line separator cannot either', 'a\u2028b', 'a<U+2028>b'],
		['NUL and DEL are visible', 'a\0b\x7f', 'a^@b^?'],
		['text cannot be turned round', 'safe\u202etxt.exe', 'safe<U+202E>txt.exe'],
		['isolates neither', '\u2066x\u2069', '<U+2066>x<U+2069>'],
		['zero-width marks are visible', 'ad\u200bmin\ufeff', 'ad<U+200B>min<U+FEFF>'],
		['a joined emoji falls apart into its people', '👩\u200d💻', '👩<U+200D>💻'],
		['a flag is its letters', '🇩🇪', 'DE'],
		['skin tones and variation selectors are dropped', '👍🏽 ⚠\ufe0f', '👍 ⚠'],
		['marks do not pile up', 'e\u0301\u0301\u0301\u0301\u0301', 'e\u0301\u0301'],
		['half a surrogate pair is a question mark', 'a\ud83dz', 'a?z'],
		['Hangul fillers cannot hide a gap', 'a\u3164b', 'a<U+3164>b'],
		['wide letters stay', '日本語', '日本語'],
	])('%s', (_, given, shown) => {
		expect(clean(given)).toBe(shown);
	});

	it('costs the first cells of a monster only', () => {
		expect(clean('x'.repeat(1_000_000))).toHaveLength(4097);
	});

	it('leaves nothing that a terminal obeys, whatever comes', () => {
		const all = Array.from({length: 0x3000}, (_, code) => String.fromCharCode(code)).join('');
		expect(
			/[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u206f\u061c]/.test(
				[...all].map(clean).join(''),
			),
		).toBe(false);
	});
});

describe('fitText', () => {
	it('is exact for narrow and wide text, padded or cut', () => {
		expect(fitText('abc', 5)).toBe('abc  ');
		expect(fitText('abc', 5, 'right')).toBe('  abc');
		expect(fitText('abcdef', 4)).toBe('abc…');
		expect(fitText('日本語', 8)).toBe('日本語  ');
		expect(fitText('日本語テスト', 7)).toBe('日本語…');
		expect(fitText('日本語テスト', 6)).toBe('日本… ');
		expect(fitText('abc', 0)).toBe('');
	});

	it('takes the cells it says', () => {
		for (const text of ['abc', '日本語', 'a日b本', 'e\u0301clair', '']) {
			for (let cells = 1; cells < 9; cells++) expect(width(fitText(text, cells))).toBe(cells);
		}
	});

	it('does not mark what is whole', () => {
		expect(truncate('abcd', 4)).toBe('abcd');
	});
});

describe('wrap', () => {
	it('loses nothing of a command', () => {
		const command = `systemctl stop --no-block -- vllm-kimi-k25-int4.service && echo ${'x'.repeat(60)}`;
		const lines = wrap(command, 20);
		expect(lines.every(line => width(line) <= 20)).toBe(true);
		expect(lines.join('').replaceAll(' ', '')).toBe(command.replaceAll(' ', ''));
	});

	it('breaks at blanks where there is one', () => {
		expect(wrap('take the unit out of the boot', 16)).toEqual(['take the unit', 'out of the boot']);
	});
});
