import {createStore, type StoreApi} from 'zustand/vanilla';
import {NO_FACTS} from '../ops/facts.ts';
import type {Target} from '../ops/target.ts';
import type {ConsoleState, PaneId, Session} from './state.ts';

export type ConsoleStore = StoreApi<ConsoleState>;

const perPane = <T>(value: T): Record<PaneId, T> => ({
	gpu: value,
	processes: value,
	mounts: value,
	extraction: value,
	log: value,
	operations: value,
});

export function initialState(
	target: Target,
	session: Pick<Session, 'mode' | 'operator' | 'from' | 'token' | 'readOnly' | 'own'>,
	nowMs: number,
): ConsoleState {
	return {
		target,
		nowMs,
		session: {...session, dryRun: false, startedAt: nowMs, lastKeyAt: nowMs, configTrouble: null, recording: 'off'},
		route: {state: 'connecting', label: target.routes[0]?.ssh ?? 'local', since: nowMs, passedOver: []},
		facts: NO_FACTS,
		history: {at: [], gpus: new Map()},
		alerts: [],
		journal: [],
		operation: {phase: 'idle', last: null},
		view: {
			focus: 'gpu',
			zoomed: false,
			selected: perPane<string | null>(null),
			filter: perPane(''),
			sort: {processes: 'holders', inverted: false},
			tree: true,
			logScroll: 0,
			logWrap: false,
			logSource: 'server',
			overlays: [],
			frozenAt: null,
			hint: null,
		},
		work: 0,
	};
}

export const createConsoleStore = (initial: ConsoleState): ConsoleStore => createStore<ConsoleState>(() => initial);
