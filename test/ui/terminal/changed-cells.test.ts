import {Terminal} from '@xterm/headless';
import {expect, test} from 'vitest';
import {changedCells} from '../../../src/ui/terminal/changed-cells.ts';

const COLUMNS = 24;
const ESC = '\x1b';
const CODES = [1, 2, 7, 31, 33, 36, 90, 97, 22, 27, 39];
const WORDS = ['gpu', '19 %', ' ', '   ', '────', '█▄', '…', 'age 0.9s', ''];

/** The same for the same seed. */
function dice(seed: number): (sides: number) => number {
	let state = seed;
	return sides => {
		state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
		return (state >>> 8) % sides;
	};
}

/** As Ink draws lines: words with looks that are nested, or follow each other; all off and no blanks at the end. */
function anyLine(roll: (sides: number) => number): string {
	let line = '';
	let cells = 0;
	for (let part = roll(6); part > 0; part--) {
		const word = WORDS[roll(WORDS.length)] ?? '';
		if (cells + word.length > COLUMNS) break;
		cells += word.length;
		if (roll(2) === 0) line += `${ESC}[${CODES[roll(CODES.length)]}m`;
		line += word;
	}
	return `${line}${ESC}[22m${ESC}[27m${ESC}[39m`;
}

/** Each cell of the first line with its looks, as a terminal holds it after these bytes. */
async function shown(bytes: string): Promise<string[]> {
	const terminal = new Terminal({cols: COLUMNS, rows: 3, allowProposedApi: true});
	await new Promise<void>(resolve => terminal.write(bytes, resolve));
	const line = terminal.buffer.active.getLine(0);
	return Array.from({length: COLUMNS}, (_, column) => {
		const cell = line?.getCell(column);
		const text = cell?.getChars() || ' ';
		if (!cell || (text === ' ' && !cell.isInverse())) return ' ';
		return `${text} ${cell.isBold()} ${cell.isDim()} ${cell.isInverse()} ${cell.getFgColorMode()} ${cell.getFgColor()}`;
	});
}

test('of 400 pairs of lines, what is written makes the one of the other, and leaves no look on', async () => {
	const roll = dice(7);
	for (let pair = 0; pair < 400; pair++) {
		const [previous, next] = [anyLine(roll), anyLine(roll)];
		const change = changedCells(previous, next, COLUMNS);
		const after = `\r${ESC}[2Bx`;
		expect(await shown(`${previous}${change}${after}`), JSON.stringify([previous, next, change])).toEqual(
			await shown(`${next}${after}`),
		);
		const last = await shown(`${previous}${change}\r${ESC}[KX`);
		expect(last[0]).toBe((await shown('X'))[0]);
	}
});

test('only what changes is written, with the looks it has', () => {
	const line = (age: string, end: string) => `${ESC}[1mgpu${ESC}[22m 8 cards ${ESC}[2mage ${age}${ESC}[22m ${end}`;
	expect(changedCells(line('0.9s', ''), line('1.9s', ''), COLUMNS)).toBe(`${ESC}[17G${ESC}[2m1${ESC}[m`);
	expect(changedCells(line('1s', 'x'), line('1s', ''), COLUMNS)).toBe(`${ESC}[20G${ESC}[K`);
	expect(changedCells(line('1s', 'x'), line('1s', 'x'), COLUMNS)).toBe('');
	expect(changedCells('a........................z'.slice(0, 20), 'b..................y', COLUMNS)).toBe(
		`${ESC}[1Gb${ESC}[20Gy`,
	);
});

test('what may be wider than a cell, moves the cursor or has looks of its own is left to Ink', () => {
	for (const line of ['日本', 'e\u0301', '\t', `${ESC}[38;5;1mx`, `${ESC}[2Jx`, `${ESC}]8;;x`, '🙂', 'x'.repeat(25)]) {
		expect(changedCells('x', line, COLUMNS)).toBe(null);
		expect(changedCells(line, 'x', COLUMNS)).toBe(null);
	}
	expect(changedCells('x', 'y', Number.NaN)).toBe(null);
});
