import {detailsOf} from '../../state/selectors/details.ts';
import {type ConsoleState, type Overlay, PANES} from '../../state/state.ts';
import {clock} from '../format.ts';
import {type Binding, GROUPS} from '../keymap/binding.ts';
import {bindings} from '../keymap/bindings.ts';
import {keysOf, placeOf} from '../keymap/key-list.ts';
import {whyRows} from '../panes/why-pane.tsx';
import {PANE_NAMES} from '../parts/title.ts';
import {clean, fitText, wrap} from '../safe.ts';
import {type Row, span, type Tone} from '../theme.ts';
import type {Layer, Screen} from './layer.ts';

type Of<T extends Overlay['type']> = Extract<Overlay, {type: T}>;

/** Keys of the pane in focus first, then all, by group. Read from the one table. */
export function helpLayer({scroll}: Of<'help'>, state: ConsoleState, screen: Screen): Layer {
	const width = Math.max(30, Math.min(screen.width - 6, 96));
	const row = (binding: Binding): Row =>
		binding.keys[0] === '1'
			? [span(fitText('1-6', 19), 'accent'), span('to a pane by its number')]
			: [span(fitText(keysOf(binding), 19), 'accent'), span(binding.says)];
	const here = bindings.filter(binding => binding.scope === state.view.focus);
	const own: Row[] =
		here.length > 0 ? [[span(`${PANE_NAMES[state.view.focus]} pane`, 'title')], ...here.map(row), []] : [];
	const panes = bindings.filter(
		binding => (binding.scope === 'global' || binding.scope === 'always') && !/^[2-6]$/.test(binding.keys[0] ?? ''),
	);
	const rest = GROUPS.flatMap((group): Row[] => {
		const rows = panes.filter(binding => binding.group === group);
		return rows.length === 0 ? [] : [[span(group, 'title')], ...rows.map(row), []];
	});
	const layers = bindings.filter(
		binding => binding.scope !== 'global' && binding.scope !== 'always' && !PANES.some(pane => pane === binding.scope),
	);
	const inLayers: Row[] = [
		[span('in lists and dialogs', 'title')],
		...layers.map(
			(binding): Row => [
				span(fitText(keysOf(binding), 19), 'accent'),
				span(fitText(placeOf(binding.scope), 24), 'dim'),
				span(binding.says),
			],
		),
	];
	return {
		title: [span('keys', 'title')],
		body: [...own, ...rest, ...inLayers],
		foot: [],
		stands: {by: 'scroll', at: scroll},
		width,
	};
}

export function detailsLayer({pane, scroll}: Of<'details'>, state: ConsoleState, screen: Screen): Layer {
	const width = Math.max(20, Math.min(screen.width - 6, 108));
	return {
		title: [span(`why: ${PANE_NAMES[pane]}`, 'title')],
		body: detailsOf(state, pane).flatMap(line => whyRows(line, width)),
		foot: [],
		stands: {by: 'scroll', at: scroll},
		width,
	};
}

const LEVELS: Record<ConsoleState['journal'][number]['level'], Tone> = {
	ok: 'good',
	warning: 'warn',
	critical: 'bad',
	info: 'plain',
};

/** Newest first: words, and beneath them the command that was run. */
export function commandLogLayer({scroll}: Of<'command-log'>, state: ConsoleState, screen: Screen): Layer {
	const width = Math.max(20, Math.min(screen.width - 6, 112));
	const entries = state.journal
		.filter(entry => entry.command !== null || entry.kind === 'intent' || entry.kind === 'outcome')
		.toReversed();
	const body = entries.flatMap(entry => [
		...wrap(clean(entry.words), width - 9).map(
			(line, index): Row => [
				span(index === 0 ? `${clock(entry.at)} ` : '         ', 'dim'),
				{text: line, tone: LEVELS[entry.level]},
			],
		),
		...(entry.command === null
			? []
			: entry.command
					.split('\n')
					.flatMap(line =>
						wrap(clean(line), width - 11).map(
							(part, index): Row => [
								span(index === 0 ? '         $ ' : '           ', 'dim'),
								{text: part, tone: 'accent'},
							],
						),
					)),
	]);
	return {
		title: [span('command log', 'title'), span('  newest first', 'dim')],
		body: body.length > 0 ? body : [[span('nothing has been run', 'dim')]],
		foot: [],
		stands: {by: 'scroll', at: scroll},
		width,
	};
}

export function filterLayer({pane, text}: Of<'filter'>): Layer {
	return {
		title: [span(`filter ${PANE_NAMES[pane]}`, 'title'), span('  !text leaves out', 'dim')],
		body: [[span('/', 'accent'), span(`${text}_`)]],
		foot: [],
		stands: {by: 'scroll', at: 0},
		width: 56,
		low: true,
	};
}

export const unlockLayer = (state: ConsoleState): Layer => ({
	title: [span('leave read-only', 'title')],
	body: [
		[span(`Operations on ${state.target.name} become possible.`)],
		[span('Each one still shows its commands and asks. The journal keeps that you unlocked it.', 'dim')],
	],
	foot: [[], [span('y leaves read-only, n stays')]],
	stands: {by: 'scroll', at: 0},
	width: 84,
});

export const quitLayer = (state: ConsoleState): Layer => ({
	title: [span('quit', 'title')],
	body: [
		[span(state.operation.phase === 'running' ? `${state.operation.plan.title} is running.` : 'Quit the console?')],
		[span('What was started on the host goes on; nobody here watches its end, and later steps are not begun.', 'dim')],
	],
	foot: [[], [span('y quits, n stays')]],
	stands: {by: 'scroll', at: 0},
	width: 100,
});
