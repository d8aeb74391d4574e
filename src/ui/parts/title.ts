import type {Face} from '../../state/selectors/face.ts';
import {PANES, type PaneId} from '../../state/state.ts';
import {age, duration} from '../format.ts';
import {type Row, rowWidth, span, truncateRow} from '../theme.ts';

export const PANE_NAMES: Record<PaneId, string> = {
	gpu: 'GPU',
	processes: 'PROC',
	mounts: 'MOUNTS',
	extraction: 'EXTRACT',
	log: 'LOG',
	operations: 'OPS',
};

export const paneNumber = (pane: PaneId): number => PANES.indexOf(pane) + 1;

/** The line on top of a pane. Focus is in the brackets and the heavy line, not in a colour alone. */
export function titleRow(name: string, focused: boolean, words: Row, right: Row, width: number): Row {
	const rule = focused ? '━' : '─';
	const line = focused ? 'accent' : 'dim';
	const lead: Row = focused
		? [
				{text: `${rule}[`, tone: line},
				{text: name, tone: 'title'},
				{text: ']', tone: line},
			]
		: [
				{text: `${rule} `, tone: line},
				{text: name, tone: 'title'},
			];
	// The right side says how far the pane may be trusted: it is cut last.
	const end = truncateRow(right, Math.max(0, Math.floor(width * 0.6)));
	const tail: Row = rowWidth(end) === 0 ? [] : [span(' '), ...end, span(' '), {text: rule, tone: line}];
	const left = [
		...truncateRow(
			[...lead, ...(rowWidth(words) > 0 ? [span('  '), ...words] : [])],
			Math.max(0, width - rowWidth(tail) - 2),
		),
		span(' '),
	];
	const room = width - rowWidth(left) - rowWidth(tail);
	if (room < 1) return truncateRow([...left, {text: rule.repeat(width), tone: line}], width);
	return [...left, {text: rule.repeat(room), tone: line}, ...tail];
}

export const paneTitle = (pane: PaneId, focused: boolean, words: Row, right: Row, width: number): Row =>
	titleRow(`${paneNumber(pane)} ${PANE_NAMES[pane]}`, focused, words, right, width);

/** How much the pane may be trusted, in words. */
export function faceRow(face: Face): Row {
	switch (face.kind) {
		case 'unheard':
			return [span('not yet heard', 'dim')];
		case 'fresh':
			return [span(`age ${age(face.ageMs)}`, 'dim')];
		case 'late':
			return [span(`late, age ${age(face.ageMs)}`, 'warn')];
		case 'stale':
			return [span(`STALE, age ${age(face.ageMs)}`, 'bad')];
		case 'failing': {
			const old = face.ageMs === null ? '' : ` (shown: ${age(face.ageMs)} old)`;
			return [span(`FAILING ${duration(face.forMs)}${old}: ${face.words}`, 'bad')];
		}
	}
}

/** The body of a pane that has nothing to show, and why. */
export function emptyBody(face: Face, empty: string): readonly Row[] {
	if (face.kind === 'unheard') return [[span(' not yet heard', 'dim')]];
	if (face.kind === 'failing') return [[span(` cannot look: ${face.words}`, 'bad')]];
	return [[span(` ${empty}`, 'dim')]];
}
