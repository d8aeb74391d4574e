import {selectRunbook} from '../../state/selectors/next-step.ts';
import type {ConsoleState, Held, Overlay} from '../../state/state.ts';
import {duration} from '../format.ts';
import {clean, wrap} from '../safe.ts';
import {type Row, span} from '../theme.ts';
import {planRows} from './confirm.ts';
import type {Layer, Screen} from './layer.ts';

const MARKS = {met: ['[ok]', 'good'], pending: ['[  ]', 'plain'], failed: ['[??]', 'warn']} as const;

/** A recovery that goes step by step: the checklist as it stands, and literally what the next step would do. */
export function heldLayer({scroll}: Extract<Overlay, {type: 'held'}>, state: ConsoleState, screen: Screen): Layer {
	const width = Math.max(20, Math.min(screen.width - 6, 112));
	const held = heldIn(state);
	return {
		title: [
			span('step by step', 'title'),
			span(`  on ${state.target.name}`, 'dim'),
			...(held ? [span(`  waits for you ${duration(Math.max(0, state.nowMs - held.since))}`, 'warn')] : []),
		],
		body: held
			? [
					...checkRows(state, held.check, width),
					[],
					[span('next: ', 'accent'), span(held.next.title, 'title')],
					...planRows(held.next, width),
				]
			: [[span('nothing waits', 'dim')]],
		foot: [
			[],
			state.session.readOnly
				? [span('read-only: Tab, then W leaves it   Esc stops here', 'warn')]
				: [span('y does this step   Y this and all the rest   Esc stops here')],
			[span('Tab lays this aside and goes on waiting; H brings it back', 'dim')],
		],
		stands: {by: 'scroll', at: scroll},
		width,
	};
}

export const heldIn = ({operation}: ConsoleState): Held | null =>
	(operation.phase === 'running' && operation.held) || null;

function checkRows(state: ConsoleState, next: string, width: number): readonly Row[] {
	return selectRunbook(state).checks.flatMap(({id, state: verdict, words}): Row[] => {
		const [mark, tone] = MARKS[verdict];
		const head = `${id === next ? '>' : ' '}${mark} ${id.padEnd(11)}`;
		const here = id === next ? 'accent' : tone;
		return wrap(clean(words), Math.max(8, width - head.length)).map(
			(line, index): Row => [
				span(index === 0 ? head : ' '.repeat(head.length), here),
				span(line, verdict === 'met' ? 'dim' : 'plain'),
			],
		);
	});
}
