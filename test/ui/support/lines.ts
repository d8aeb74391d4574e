import {type Row, rowText} from '../../../src/ui/theme.ts';

/** What a row looks like, without looks: the text as it stands on the screen. */
export const linesOf = (rows: readonly Row[]): string[] => rows.map(row => rowText(row).trimEnd());

/** The looks of a row's words: `bad:HUNG`. */
export const tonesOf = (row: Row | undefined): string[] =>
	(row ?? []).filter(({text}) => text.trim() !== '').map(({text, tone}) => `${tone}:${text.trim()}`);
