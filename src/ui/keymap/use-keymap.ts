import type {EventEmitter} from 'node:events';
import {useInput, usePaste, useStdin} from 'ink';
import {useEffect} from 'react';
import {cardLines} from '../../state/selectors/gpus.ts';
import {selectLog} from '../../state/selectors/log.ts';
import type {ConsoleState} from '../../state/state.ts';
import {type ConsoleTools, useTools} from '../hooks/use-console.ts';
import {layout} from '../layout.ts';
import {reachOf} from '../overlays/layer.ts';
import {topLayer} from '../overlays/layers.tsx';
import {clean} from '../safe.ts';
import {isRefused, type Meaning, type Moment, scopesOf, TEXT_SCOPES} from './binding.ts';
import {resolve} from './bindings.ts';
import {functionKey, type Press, presses} from './keys.ts';

/** The one listener for keys and pastes. */
export function useKeymap(clock: () => number = Date.now): void {
	const tools = useTools();
	const stdin = useStdin();
	useInput((input, key) => {
		for (const press of presses(input, key)) pressed(press, tools, clock());
	});
	usePaste(text => pasted(text, tools, clock()));
	useEffect(() => {
		const emitter = inputOf(stdin);
		const listen = (sequence: unknown): void => {
			const press = typeof sequence === 'string' ? functionKey(sequence) : null;
			if (press) pressed(press, tools, clock());
		};
		emitter?.on('input', listen);
		return () => {
			emitter?.off('input', listen);
		};
	}, [stdin, tools, clock]);
}

/** Ink keeps the sequences to itself, and its own events have no function keys (ink is pinned). */
function inputOf(stdin: object): EventEmitter | null {
	const emitter = 'internal_eventEmitter' in stdin ? stdin.internal_eventEmitter : null;
	return typeof emitter === 'object' && emitter !== null && 'on' in emitter && 'off' in emitter
		? (emitter as EventEmitter)
		: null;
}

export function pressed(press: Press, tools: ConsoleTools, nowMs: number): void {
	const state = tools.store.getState();
	perform(resolve(press, scopesOf(state), state, momentOf(state, tools, nowMs)), tools);
}

/** A paste is text where text is taken, and nothing anywhere else: it never acts and never confirms. */
export function pasted(text: string, tools: ConsoleTools, nowMs: number): void {
	const state = tools.store.getState();
	const [scope] = scopesOf(state);
	const line = clean(text.split(/[\r\n]/, 1)[0] ?? '');
	if (scope === undefined || !TEXT_SCOPES.has(scope) || line === '') {
		perform({refused: 'a paste does nothing here'}, tools);
		return;
	}
	const press: Press = {name: 'paste', text: line, burst: true};
	perform(resolve(press, [scope], state, momentOf(state, tools, nowMs)), tools);
}

function perform(meaning: Meaning, tools: ConsoleTools): void {
	if (!Array.isArray(meaning) && isRefused(meaning)) {
		tools.dispatch({type: 'hint', words: meaning.refused});
		return;
	}
	for (const action of [meaning].flat()) if (!('refused' in action)) tools.dispatch(action);
}

/** Rows are found by identity, so their list ends where it ends: further than any list is the end. */
const FAR = 1_000_000;

/** How far the thing on top reaches on this screen. */
export function momentOf(state: ConsoleState, tools: Pick<ConsoleTools, 'viewport'>, nowMs: number): Moment {
	const {columns, rows} = tools.viewport.get();
	const placed = layout(columns, rows, {
		focus: state.view.focus,
		zoomed: state.view.zoomed,
		gpus: cardLines(state),
	});
	const layer = topLayer(state, placed);
	if (layer) return {nowMs, reach: reachOf(layer, placed)};
	const page = Math.max(1, (placed.boxes.find(box => box.id === state.view.focus)?.height ?? 10) - 2);
	if (state.view.focus !== 'log') return {nowMs, reach: {at: FAR, last: 2 * FAR, page}};
	// The log counts its lines from the end.
	const last = Math.max(0, selectLog(state).lines.length - 1);
	return {nowMs, reach: {at: last - Math.min(last, state.view.logScroll), last, page}};
}
