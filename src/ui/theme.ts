import {clean, start, width} from './safe.ts';

/** A look by meaning. Every state is a word first; the tone only repeats it. */
export type Tone = 'plain' | 'dim' | 'good' | 'warn' | 'bad' | 'accent' | 'inverse' | 'title';
export type Span = {readonly text: string; readonly tone: Tone};
/** One line of the screen. */
export type Row = readonly Span[];

export type Theme = {readonly color: boolean; readonly ascii: boolean};

const COLORED: Record<Tone, string> = {
	plain: '',
	dim: '2',
	good: '32',
	warn: '33',
	bad: '1;31',
	accent: '36',
	inverse: '7',
	title: '1',
};

const MONOCHROME: Record<Tone, string> = {
	plain: '',
	dim: '',
	good: '',
	warn: '1',
	bad: '1;7',
	accent: '1',
	inverse: '7',
	title: '1',
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
	for (const {text, tone} of row) {
		if (text === '') continue;
		const shown = theme.ascii ? toAscii(text) : text;
		const look = looks[tone];
		out += look === '' ? shown : `\x1b[${look}m${shown}\x1b[0m`;
	}
	return out;
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
