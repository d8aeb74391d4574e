import type {ConsoleState, Frozen} from '../state.ts';
import {derive} from './derive.ts';

/** What the panes draw: the facts of now, or those of the moment the display was frozen. Alerts and acts go on. */
export const onScreen: (state: ConsoleState) => Frozen = derive(
	[state => state.view.frozen ?? null, state => state.facts, state => state.history, state => state.nowMs],
	(frozen, facts, history, nowMs) => frozen ?? {facts, history, nowMs},
);

export const factsOnScreen = (state: ConsoleState) => onScreen(state).facts;
export const historyOnScreen = (state: ConsoleState) => onScreen(state).history;
export const nowOnScreen = (state: ConsoleState) => onScreen(state).nowMs;
