import {clean, start, width} from './safe.ts';

/** A look by meaning. Every state is a word first; the tone only repeats it. */
export type Tone = 'plain' | 'dim' | 'good' | 'warn' | 'bad' | 'accent' | 'inverse' | 'title';
export type Span = {readonly text: string; readonly tone: Tone};
/** One line of the screen. */
export type Row = readonly Span[];

export type Theme = {readonly color: boolean; readonly ascii: boolean};

type Code = {readonly open: string; readonly close: string};
const code = (open: number, close: number): Code => ({open: `\x1b[${open}m`, close: `\x1b[${close}m`});
const BOLD = code(1, 22);
const DIM = code(2, 22);
const INVERSE = code(7, 27);
const color = (number: number): Code => code(number, 39);

const COLORED: Record<Tone, readonly Code[]> = {
	plain: [],
	dim: [DIM],
	good: [color(32)],
	warn: [color(33)],
	bad: [BOLD, color(31)],
	accent: [color(36)],
	inverse: [INVERSE],
	title: [BOLD],
};

const MONOCHROME: Record<Tone, readonly Code[]> = {
	plain: [],
	dim: [],
	good: [],
	warn: [BOLD],
	bad: [BOLD, INVERSE],
	accent: [BOLD],
	inverse: [INVERSE],
	title: [BOLD],
};

/** From one look to the next in the fewest codes: just as Ink writes it, so that it need not read our lines twice. */
function change(from: readonly Code[], to: readonly Code[]): string {
	const intensity = (one: Code): boolean => one.close === BOLD.close;
	const gone = from.filter(one => (intensity(one) ? !has(to, one) : !to.some(({close}) => close === one.close)));
	const lost = gone.some(intensity);
	const come = to.filter(one => !has(from, one) || (lost && intensity(one)));
	return [...gone.toReversed().map(({close}) => close), ...come.map(({open}) => open)].join('');
}

const has = (codes: readonly Code[], one: Code): boolean => codes.some(({open}) => open === one.open);

/** Host text becomes a span here, so nothing unclean reaches the screen by this way. */
export const span = (text: string, tone: Tone = 'plain'): Span => ({text: clean(text), tone});

export const rowWidth = (row: Row): number => row.reduce((sum, {text}) => sum + width(text), 0);

export const rowText = (row: Row): string => row.map(({text}) => text).join('');

/** Exactly `cells` cells. */
export function fitRow(row: Row, cells: number): Row {
	const shown = truncateRow(row, cells);
	const room = cells - rowWidth(shown);
	return room > 0
		? [...shown, {text: ' '.repeat(room), tone: shown.at(-1)?.tone === 'inverse' ? 'inverse' : 'plain'}]
		: shown;
}

export function truncateRow(row: Row, cells: number): Row {
	if (rowWidth(row) <= cells) return row;
	const shown: Span[] = [];
	let room = cells - 1;
	for (const part of row) {
		const wide = width(part.text);
		if (wide <= room) {
			shown.push(part);
			room -= wide;
			continue;
		}
		if (cells > 0) shown.push({text: `${start(part.text, room)}…`, tone: part.tone});
		break;
	}
	return shown;
}

/** The left row, and the right one at the end of the line when both fit. */
export function spread(left: Row, right: Row, cells: number): Row {
	const room = cells - rowWidth(right);
	if (rowWidth(right) === 0 || room < 12) return fitRow(left, cells);
	return [...fitRow(left, room), ...right];
}

/** The whole row in one look: the selected line of the focused pane. */
export const invert = (row: Row): Row => [{text: rowText(row), tone: 'inverse'}];

/** Text for the terminal: 16 colours so that the operator's own palette applies, or bold and inverse only. */
export function paint(row: Row, theme: Theme): string {
	const looks = theme.color ? COLORED : MONOCHROME;
	let out = '';
	let look = looks.plain;
	for (const {text, tone} of row) {
		if (text === '') continue;
		if (looks[tone] !== look) out += change(look, looks[tone]);
		look = looks[tone];
		out += theme.ascii ? toAscii(text) : text;
	}
	return out + change(look, looks.plain);
}

/** Cell for cell, so that a layout made for lines and blocks stays right. */
export function toAscii(text: string): string {
	if (/^[\x20-\x7e]*$/.test(text)) return text;
	let out = '';
	for (const character of text) {
		const plain = ASCII[character];
		out += plain ?? (character <= '~' ? character : '?'.repeat(width(character)));
	}
	return out;
}

const ASCII: Readonly<Record<string, string>> = {
	'─': '-',
	'━': '=',
	'│': '|',
	'┃': '|',
	'┌': '+',
	'┐': '+',
	'└': '+',
	'┘': '+',
	'├': '+',
	'┤': '+',
	'┬': '+',
	'┴': '+',
	'┼': '+',
	'…': '~',
	'–': '-',
	'·': '.',
	'▁': '_',
	'▂': '.',
	'▃': '-',
	'▄': '=',
	'▅': '+',
	'▆': '*',
	'▇': '%',
	'█': '#',
};

/** From the environment: NO_COLOR, a locale without UTF-8, the Linux console's small font. */
export function themeFor(env: Readonly<Record<string, string | undefined>>, flags: {ascii?: boolean} = {}): Theme {
	const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
	const utf8 = /utf-?8/i.test(locale);
	return {
		color: (env.NO_COLOR ?? '') === '',
		ascii: flags.ascii === true || !utf8 || env.TERM === 'linux',
	};
}
