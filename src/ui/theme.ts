import {clean, start, width} from './safe.ts';

/** A look by meaning. Every state is a word first; the tone only repeats it. */
export type Tone = 'plain' | 'dim' | 'good' | 'warn' | 'bad' | 'accent' | 'inverse' | 'title';
export type Span = {readonly text: string; readonly tone: Tone};
/** One line of the screen. */
export type Row = readonly Span[];

export type Theme = {readonly color: boolean; readonly ascii: boolean};

type Look = readonly [open: string, close: string];
const NONE: Look = ['', ''];
const BOLD: Look = ['\x1b[1m', '\x1b[22m'];
const INVERSE: Look = ['\x1b[7m', '\x1b[27m'];
const color = (code: number): Look => [`\x1b[${code}m`, '\x1b[39m'];

/** In the form in which Ink itself writes looks: it then reads each line once instead of twice. */
const COLORED: Record<Tone, Look> = {
	plain: NONE,
	dim: ['\x1b[2m', '\x1b[22m'],
	good: color(32),
	warn: color(33),
	bad: ['\x1b[1m\x1b[31m', '\x1b[39m\x1b[22m'],
	accent: color(36),
	inverse: INVERSE,
	title: BOLD,
};

const MONOCHROME: Record<Tone, Look> = {
	plain: NONE,
	dim: NONE,
	good: NONE,
	warn: BOLD,
	bad: ['\x1b[1m\x1b[7m', '\x1b[27m\x1b[22m'],
	accent: BOLD,
	inverse: INVERSE,
	title: BOLD,
};

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
	let look = NONE;
	for (const {text, tone} of row) {
		if (text === '') continue;
		const next = looks[tone];
		// Two neighbours of one look are one to the terminal.
		if (next !== look) out += look[1] + next[0];
		look = next;
		out += theme.ascii ? toAscii(text) : text;
	}
	return out + look[1];
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
