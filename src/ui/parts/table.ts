import {fitText} from '../safe.ts';
import {fitRow, invert, type Row, type Span} from '../theme.ts';

/** One column: title and value cannot drift apart, as both are here. */
export type Column<Item> = {
	readonly title: string;
	/** Least width; with `grow` the column takes what is left over. */
	readonly width: number;
	readonly grow?: true;
	/** Cells it may take on top before the growing column gets the rest. */
	readonly stretch?: number;
	readonly align?: 'right';
	/** 1 stays longest when the pane is narrow. */
	readonly keep: number;
	cell(item: Item, width: number): Span | Row;
};

export type Placed<Item> = {readonly column: Column<Item>; readonly width: number};

/** What a growing column keeps for itself before others stretch. */
const RESERVE = 12;

/** The columns that fit, most important first, in their own order; one cell of mark and one between them. */
export function choose<Item>(columns: readonly Column<Item>[], width: number): readonly Placed<Item>[] {
	let room = width - 1;
	const chosen = new Set<Column<Item>>();
	for (const column of columns.toSorted((a, b) => a.keep - b.keep)) {
		const cost = column.width + (chosen.size > 0 ? 1 : 0);
		if (cost > room) continue;
		chosen.add(column);
		room -= cost;
	}
	const placed = columns
		.filter(column => chosen.has(column))
		.map(column => {
			const more = Math.max(0, Math.min(column.stretch ?? 0, room - RESERVE));
			room -= more;
			return {column, width: column.width + more};
		});
	return placed.map(({column, width: wide}) => ({column, width: column.grow ? wide + room : wide}));
}

export const headings = <Item>(placed: readonly Placed<Item>[]): Row => [
	{text: ` ${placed.map(({column, width}) => fitText(column.title, width, column.align)).join(' ')}`, tone: 'dim'},
];

/** `>` marks the selected row; in the focused pane the whole row stands out as well. */
export function tableRow<Item>(placed: readonly Placed<Item>[], item: Item, selected: boolean, focused: boolean): Row {
	const row: Span[] = [{text: selected ? '>' : ' ', tone: 'accent'}];
	for (const [index, {column, width}] of placed.entries()) {
		if (index > 0) row.push({text: ' ', tone: 'plain'});
		const shown = column.cell(item, width);
		if ('text' in shown) row.push({text: fitText(shown.text, width, column.align), tone: shown.tone});
		else row.push(...fitRow(shown, width));
	}
	return selected && focused ? invert(row) : row;
}

/** The part of a list that fits, with the selected item in it. */
export function windowOn(
	length: number,
	selected: number,
	height: number,
): {readonly from: number; readonly to: number} {
	const from = Math.min(Math.max(0, selected - Math.floor(height / 2)), Math.max(0, length - height));
	return {from, to: Math.min(length, from + height)};
}

/** Headings and as many rows as there is room for, around the selected one. */
export function tableBody<Item extends {readonly selected: boolean}>(
	columns: readonly Column<Item>[],
	rows: readonly Item[],
	{width, focused}: {readonly width: number; readonly focused: boolean},
	height: number,
): readonly Row[] {
	const placed = choose(columns, width);
	const {from, to} = windowOn(
		rows.length,
		rows.findIndex(row => row.selected),
		Math.max(1, height - 1),
	);
	return [headings(placed), ...rows.slice(from, to).map(row => tableRow(placed, row, row.selected, focused))];
}
