import {ParseError} from '../outcome.ts';
import {type Known, known, unknown} from '../probes/probe.ts';

/** Cells by field name, as the tool prints them. */
export type SmiRow = ReadonlyMap<string, string>;

/**
 * A CSV answer of nvidia-smi: rows in the tool's order, and every line that is no row (the tool prints its complaints among
 * the rows, on stdout). With or without a header and units; with a header its names win over `fields`. Free text goes last
 * in `fields` and may hold commas. Source: nvidia-smi 470–580; fixtures/nvidia-smi.
 */
export function readQuery(
	text: string,
	fields: readonly string[],
): {rows: readonly SmiRow[]; notes: readonly string[]} {
	const lines = text.split('\n').filter(line => line.trim() !== '');
	const header = lines.findIndex(isHeader);
	const names = header < 0 ? fields : cellsOf(lines[header] ?? '').map(cell => cell.replace(/ \[[^\]]*\]$/, ''));
	const rows: SmiRow[] = [];
	const notes: string[] = [];
	for (const [index, line] of lines.entries()) {
		if (index === header) continue;
		const cells = cellsOf(line);
		if (cells.length < names.length) notes.push(line.trim());
		else rows.push(rowOf(names, cells));
	}
	return {rows, notes};
}

const cellsOf = (line: string) => line.split(',').map(cell => cell.trim());

/** Field names are lower case; every row has a number, an id or a bracket somewhere. */
function isHeader(line: string): boolean {
	const cells = cellsOf(line);
	return cells.length > 1 && cells.every(cell => /^[a-z][a-z_.]*( \[[^\]]*\])?$/.test(cell));
}

function rowOf(names: readonly string[], cells: readonly string[]): SmiRow {
	const fixed = names.length - 1;
	const row = new Map(names.slice(0, fixed).map((name, index) => [name, cells[index] ?? '']));
	row.set(names[fixed] ?? '', cells.slice(fixed).join(', '));
	return row;
}

/** What the tool prints instead of a value; brackets and case vary. */
const NO_VALUE =
	/^(\[.*\]|n\/a|not supported|unknown error|gpu requires reset|reset required|insufficient permissions|not found|no permissions|err!|-|)$/i;

/** A number with or without its unit, or the tool's own word for why there is none. */
export function smiNumber(cell: string | undefined): Known<number> {
	const text = cell?.trim() ?? 'not asked';
	const number = /^(-?\d+(?:\.\d+)?)(?: ?[A-Za-z%]+)?$/.exec(text)?.[1];
	if (number !== undefined) return known(Number(number));
	if (cell === undefined || NO_VALUE.test(text)) return unknown(text === '' ? 'empty' : text);
	throw new ParseError('nvidia-smi', text);
}

const MIB = 1024 * 1024;

export function smiBytes(cell: string | undefined): Known<number> {
	const value = smiNumber(cell);
	return value.known ? known(value.value * MIB) : value;
}

/** `Enabled`, `Disabled`, else the tool's word. */
export function smiSwitch(cell: string | undefined): Known<boolean> {
	const text = cell?.trim() ?? 'not asked';
	if (/^enabled$/i.test(text)) return known(true);
	if (/^disabled$/i.test(text)) return known(false);
	return unknown(text === '' ? 'empty' : text);
}

const THROTTLE_BITS: readonly (readonly [bit: bigint, words: string])[] = [
	[0x2n, 'clocks set by the operator'],
	[0x4n, 'power cap'],
	[0x8n, 'hardware slowdown'],
	[0x10n, 'sync boost'],
	[0x20n, 'thermal slowdown by software'],
	[0x40n, 'thermal slowdown by hardware'],
	[0x80n, 'power brake'],
	[0x100n, 'display clocks'],
];

/** The bit mask of clock-event reasons in words; idle (bit 0) is none. */
export function smiThrottle(cell: string | undefined): Known<readonly string[]> {
	const text = cell?.trim() ?? 'not asked';
	if (!/^0x[0-9a-f]+$/i.test(text)) return unknown(text === '' ? 'empty' : text);
	const mask = BigInt(text);
	return known(THROTTLE_BITS.filter(([bit]) => (mask & bit) !== 0n).map(([, words]) => words));
}

/** The card's own word that it must be reset, in whatever column it stands. */
export const saysReset = (row: SmiRow): boolean =>
	[...row].some(([field, cell]) => field !== 'name' && /requires reset|reset required/i.test(cell));
