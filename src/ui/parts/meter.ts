import type {Span, Tone} from '../theme.ts';

/** A bar of exactly `cells` cells; an unknown value is a row of question marks, never an empty bar. */
export function bar(fraction: number | null, cells: number, tone: Tone = 'plain'): readonly Span[] {
	if (cells <= 0) return [];
	if (fraction === null) return [{text: '?'.repeat(cells), tone: 'dim'}];
	// A value that is not nothing shows, and one that is not all leaves room.
	const exact = Math.min(1, Math.max(0, fraction)) * cells;
	const filled = fraction >= 1 ? cells : fraction <= 0 ? 0 : Math.min(cells - 1, Math.max(1, Math.round(exact)));
	return [
		{text: '━'.repeat(filled), tone},
		{text: '─'.repeat(cells - filled), tone: 'dim'},
	];
}

const STEPS = '▁▂▃▄▅▆▇█';

/** History of 0–100, newest at the right end; older looks are averaged into the cells there are. */
export function spark(values: readonly (number | null)[], cells: number): string {
	const per = Math.max(1, Math.ceil(values.length / cells));
	let out = '';
	for (let end = values.length; end > 0 && out.length < cells; end -= per) {
		const told = values.slice(Math.max(0, end - per), end).filter(value => value !== null);
		const mean = told.length === 0 ? null : told.reduce((sum, value) => sum + value, 0) / told.length;
		out = (mean === null ? ' ' : step(mean / 100)) + out;
	}
	return out.padStart(cells);
}

/** One cell for a fraction: `·` for nothing at all, a full block for all. */
export const cell = (fraction: number): string => (fraction <= 0 ? '·' : step(fraction));

const step = (fraction: number): string =>
	STEPS[Math.min(STEPS.length - 1, Math.max(0, Math.floor(fraction * STEPS.length)))] ?? ' ';
