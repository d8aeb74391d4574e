import {type RunbookModel, selectRunbook} from '../../state/selectors/next-step.ts';
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
					...checkRows(state, held.check, width, screen.height >= TALL),
					[],
					...wrap(clean(`next: ${held.next.title}`), width).map((line): Row => [span(line, 'title')]),
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

/** Below this the checks beside the next one share a line, so that the commands are in sight. */
const TALL = 32;

function checkRows(state: ConsoleState, next: string, width: number, tall: boolean): readonly Row[] {
	const {checks} = selectRunbook(state);
	const at = checks.findIndex(({id}) => id === next);
	if (tall || at < 0) return checks.flatMap(check => checkRow(check, check.id === next, width));
	const named = (mark: string, some: typeof checks): readonly Row[] =>
		some.length === 0 ? [] : [[span(` ${mark} ${some.map(({id}) => id).join(', ')}`, 'dim')]];
	const rest = checks.filter((_, index) => index !== at);
	return [
		...named(
			MARKS.met[0],
			rest.filter(({state: verdict}) => verdict === 'met'),
		),
		...checks.slice(at, at + 1).flatMap(check => checkRow(check, true, width)),
		...named(
			MARKS.pending[0],
			rest.filter(({state: verdict}) => verdict === 'pending'),
		),
		...named(
			MARKS.failed[0],
			rest.filter(({state: verdict}) => verdict === 'failed'),
		),
	];
}

function checkRow({id, state, words}: RunbookModel['checks'][number], isNext: boolean, width: number): readonly Row[] {
	const [mark, tone] = MARKS[state];
	const head = `${isNext ? '>' : ' '}${mark} ${id.padEnd(11)}`;
	return wrap(clean(words), Math.max(8, width - head.length)).map(
		(line, index): Row => [
			span(index === 0 ? head : ' '.repeat(head.length), isNext ? 'accent' : tone),
			span(line, state === 'met' ? 'dim' : 'plain'),
		],
	);
}
