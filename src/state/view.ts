import type {Action} from './actions.ts';
import {neighbour} from './selectors/row-keys.ts';
import type {ConsoleState, Overlay, ProcessSort, ViewState} from './state.ts';
import {PANES, SIGNALS} from './state.ts';

const SORTS: readonly ProcessSort[] = ['holders', 'cpu', 'memory', 'pid', 'name'];
const LOG_SOURCES = ['server', 'extraction', 'kernel'] as const;
const HINT_MS = 2_500;

/** Actions that change nothing but what is drawn. Everything with an effect is in dispatch.ts. Pure. */
export function reduceView(state: ConsoleState, action: Action, nowMs: number): ViewState {
	const {view} = state;
	switch (action.type) {
		case 'focus':
			return {...view, focus: action.pane};
		case 'focus-next': {
			const index = (PANES.indexOf(view.focus) + action.by + PANES.length) % PANES.length;
			return {...view, focus: PANES[index] ?? view.focus};
		}
		case 'zoom':
			return {...view, zoomed: !view.zoomed};
		case 'move':
			return move(state, action.by);
		case 'select':
			return {...view, selected: {...view.selected, [action.pane]: action.key}};
		case 'open':
			return {
				...view,
				overlays: [...view.overlays.filter(each => each.type !== action.overlay), opened(state, action.overlay, nowMs)],
			};
		case 'back':
			return pop(view);
		case 'escape': {
			const top = view.overlays.at(-1);
			if (top?.type === 'filter') return {...pop(view), filter: {...view.filter, [top.pane]: ''}};
			if (top) return pop(view);
			if (view.filter[view.focus]) return {...view, filter: {...view.filter, [view.focus]: ''}};
			return view.zoomed ? {...view, zoomed: false} : view;
		}
		case 'type':
			return filtered(onTop(view, top => typed(top, action.text)));
		case 'erase':
			return filtered(onTop(view, erased));
		case 'button':
			return onTop(view, top => (top.type === 'confirm' ? {...top, button: action.to} : top));
		case 'toggle-stepwise':
			return onTop(view, top => (top.type === 'confirm' ? {...top, stepwise: !top.stepwise} : top));
		case 'sort-next': {
			const index = (SORTS.indexOf(view.sort.processes) + 1) % SORTS.length;
			return {...view, sort: {...view.sort, processes: SORTS[index] ?? 'holders'}};
		}
		case 'invert-sort':
			return {...view, sort: {...view.sort, inverted: !view.sort.inverted}};
		case 'toggle-tree':
			return {...view, tree: !view.tree};
		case 'toggle-freeze': {
			const {frozen, ...thawed} = view;
			if (frozen) return {...thawed, frozenAt: null};
			return {...view, frozenAt: nowMs, frozen: {facts: state.facts, history: state.history, nowMs: state.nowMs}};
		}
		case 'toggle-follow':
			return {...view, logScroll: view.logScroll === 0 ? 1 : 0};
		case 'toggle-wrap':
			return {...view, logWrap: !view.logWrap};
		case 'log-source': {
			const {source} = action;
			const next = LOG_SOURCES[(LOG_SOURCES.indexOf(view.logSource) + 1) % LOG_SOURCES.length] ?? 'server';
			return {...view, logSource: source === 'next' ? next : source, logScroll: 0};
		}
		case 'hint':
			return {...view, hint: {words: action.words, until: nowMs + HINT_MS}};
		default:
			return view;
	}
}

/** What is typed in the filter line filters at once. */
function filtered(view: ViewState): ViewState {
	const top = view.overlays.at(-1);
	return top?.type === 'filter' ? {...view, filter: {...view.filter, [top.pane]: top.text}} : view;
}

export function onTop(view: ViewState, change: (top: Overlay) => Overlay): ViewState {
	const top = view.overlays.at(-1);
	return top ? {...view, overlays: [...view.overlays.slice(0, -1), change(top)]} : view;
}

export const pop = (view: ViewState): ViewState => ({...view, overlays: view.overlays.slice(0, -1)});

export const push = (view: ViewState, overlay: Overlay): ViewState => ({
	...view,
	overlays: [...view.overlays, overlay],
});

function typed(top: Overlay, text: string): Overlay {
	if ('text' in top) return edited(top, top.text + text);
	return top.type === 'confirm' ? {...top, typed: top.typed + text, complaint: null} : top;
}

function erased(top: Overlay): Overlay {
	if ('text' in top) return edited(top, top.text.slice(0, -1));
	return top.type === 'confirm' ? {...top, typed: top.typed.slice(0, -1)} : top;
}

function edited<T extends Overlay & {readonly text: string}>(top: T, text: string): T {
	return 'index' in top ? {...top, text, index: 0} : {...top, text};
}

function opened({view, nowMs}: ConsoleState, type: Extract<Action, {type: 'open'}>['overlay'], at: number): Overlay {
	switch (type) {
		case 'help':
		case 'command-log':
			return {type, scroll: 0};
		case 'alerts':
		case 'operations':
			return {type, index: 0};
		case 'palette':
			return {type, text: '', index: 0};
		case 'filter':
			return {type, pane: view.focus, text: view.filter[view.focus]};
		case 'signals':
			return {type, processKey: view.selected.processes ?? '', index: 0};
		case 'details':
			return {type, pane: view.focus, scroll: 0};
		case 'unlock':
			return {type, openedAt: Math.max(at, nowMs)};
		case 'held':
			return {type, openedAt: Math.max(at, nowMs), scroll: 0};
	}
}

/** How many entries the lists in overlays have; the palette's own length is known to the keymap alone. */
function listLength(state: ConsoleState, top: Overlay): number {
	if (top.type === 'alerts') return state.alerts.length;
	if (top.type === 'operations') return 9;
	if (top.type === 'signals') return SIGNALS.length + 1;
	return Number.POSITIVE_INFINITY;
}

function move(state: ConsoleState, by: number): ViewState {
	const {view} = state;
	const top = view.overlays.at(-1);
	if (top) {
		if ('index' in top) {
			const last = listLength(state, top) - 1;
			const index = Math.max(
				0,
				Math.min(
					top.index + (Number.isFinite(by) ? by : by > 0 ? (Number.isFinite(last) ? last : 0) : -top.index),
					Math.max(0, last),
				),
			);
			return onTop(view, () => ({...top, index}));
		}
		if ('scroll' in top) return onTop(view, () => ({...top, scroll: Math.max(0, Math.min(10_000, top.scroll + by))}));
		return view;
	}
	if (view.focus === 'log') return {...view, logScroll: Math.max(0, Math.min(100_000, view.logScroll - by))};
	return {...view, selected: {...view.selected, [view.focus]: neighbour(state, view.focus, by)}};
}
