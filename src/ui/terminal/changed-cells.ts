/**
 * A character that may be anything but one cell and one UTF-16 unit. Most of a screen has none: ASCII with lines and
 * blocks.
 */
export const NOT_ONE_CELL = /[^ -~\u2500-\u259F\u2026\u00B7\u2013]/;

const SGR = /\u001B\[([\d;]*)m/g;
/** To go on is shorter than to jump over so few cells. */
const JUMP = 8;

/** A look is a number: a bit for each of these codes, then the colour of the text, then that of the ground. */
const BITS: ReadonlyMap<number, number> = new Map([
	[1, 1],
	[2, 2],
	[3, 4],
	[4, 8],
	[7, 16],
	[9, 32],
]);
/** What stays of a look after these. */
const ENDS: ReadonlyMap<number, number> = new Map([
	[0, 0],
	[22, ~3],
	[23, ~4],
	[24, ~8],
	[27, ~16],
	[29, ~32],
	[39, ~0xff00],
	[49, ~0xff0000],
]);
const FLAGS = 63;
const GROUND = 0xff0000;
/** Underlined, inverse or struck through: a blank, too, has the colour of the text then. */
const DRAWN = 8 | 16 | 32;

/** As long as each other. */
type Cells = {readonly text: string; readonly looks: readonly number[]};

/**
 * What has to be written for `next` to stand where `previous` stands, both lines as Ink draws them, in a terminal `columns`
 * wide: only the cells that change, each with the looks it has and no others. Begins anywhere in the line and ends with all
 * looks off. null for lines that cannot be told apart so simply.
 */
export function changedCells(previous: string, next: string, columns: number): string | null {
	const [old, now] = [cellsOf(previous), cellsOf(next)];
	if (!old || !now || !(Math.max(old.text.length, now.text.length) <= columns)) return null;
	let out = '';
	let looks = 0;
	/** Where the next character would be written; -1 for not in this line yet. */
	let at = -1;
	for (let cell = 0; cell < now.text.length; cell++) {
		if ((old.text[cell] ?? ' ') === now.text[cell] && (old.looks[cell] ?? 0) === now.looks[cell]) continue;
		if (at < 0 || cell - at >= JUMP) {
			at = cell;
			out += `\u001B[${at + 1}G`;
		}
		for (; at <= cell; at++) {
			const wanted = now.looks[at] ?? 0;
			if (wanted !== looks) out += change(looks, wanted);
			looks = wanted;
			out += now.text[at];
		}
	}
	if (looks !== 0) out += '\u001B[m';
	return isLonger(old, now) ? `${out}\u001B[${now.text.length + 1}G\u001B[K` : out;
}

function isLonger(old: Cells, now: Cells): boolean {
	for (let cell = now.text.length; cell < old.text.length; cell++)
		if (old.text[cell] !== ' ' || old.looks[cell] !== 0) return true;
	return false;
}

/** Characters of a line and the look of each; null when one may be wider, or looks are set in another way. */
function cellsOf(line: string): Cells | null {
	let text = '';
	const looks: number[] = [];
	let look = 0;
	let from = 0;
	const take = (to: number): void => {
		const run = line.slice(from, to);
		const ofBlank = (look & DRAWN) === 0 ? look & GROUND : look;
		for (let at = 0; at < run.length; at++) looks.push(run[at] === ' ' ? ofBlank : look);
		text += run;
	};
	for (const {index, 0: sequence, 1: code = ''} of line.matchAll(SGR)) {
		take(index);
		from = index + sequence.length;
		const changed = withCode(look, Number(code));
		if (changed === null) return null;
		look = changed;
	}
	take(line.length);
	return NOT_ONE_CELL.test(text) ? null : {text, looks};
}

/** null for a code that is not known here, or several in one. */
function withCode(look: number, code: number): number | null {
	const bit = BITS.get(code);
	if (bit !== undefined) return look | bit;
	const rest = ENDS.get(code);
	if (rest !== undefined) return look & rest;
	if (isColor(code)) return (look & ~0xff00) | (code << 8);
	if (isColor(code - 10)) return (look & ~GROUND) | (code << 16);
	return null;
}

const isColor = (code: number): boolean => (code >= 30 && code <= 37) || (code >= 90 && code <= 97);

/** Adds what is new; starts from nothing where a look has to end. */
function change(from: number, to: number): string {
	const adds = (from & ~to & FLAGS) === 0 && COLORS.every(color => color(from) === 0 || color(to) !== 0);
	const base = adds ? from : 0;
	const codes: (number | string)[] = adds ? [] : [''];
	for (const [code, bit] of BITS) if ((to & ~base & bit) !== 0) codes.push(code);
	for (const color of COLORS) if (color(to) !== color(base) && color(to) !== 0) codes.push(color(to));
	return `\u001B[${codes.join(';')}m`;
}

const COLORS = [(look: number): number => (look >> 8) & 0xff, (look: number): number => (look >> 16) & 0xff];
