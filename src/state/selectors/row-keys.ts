import {identityOf} from '../../ops/probes/probe.ts';
import type {ConsoleState, PaneId} from '../state.ts';
import {selectExtraction} from './extraction.ts';
import {selectGpus} from './gpus.ts';
import {selectMounts} from './mounts.ts';
import {selectOperations} from './operations.ts';
import {selectProcesses} from './processes.ts';

type Keyed = {readonly key: string; readonly selected: boolean};

function rowsOf(state: ConsoleState, pane: PaneId): readonly Keyed[] {
	switch (pane) {
		case 'gpu':
			return selectGpus(state).rows;
		case 'processes':
			return selectProcesses(state).rows;
		case 'mounts':
			return selectMounts(state).rows;
		case 'extraction':
			return selectExtraction(state).groups;
		case 'operations':
			return selectOperations(state).journal;
		case 'log':
			return [];
	}
}

/** The identity `by` rows from the selected one, in the order on screen; null where there are no rows. */
export function neighbour(state: ConsoleState, pane: PaneId, by: number): string | null {
	const rows = rowsOf(state, pane);
	const selected = rows.findIndex(row => row.selected);
	const from = selected >= 0 ? selected : pane === 'operations' ? rows.length - 1 : 0;
	const to = Math.min(Math.max(0, from + by), rows.length - 1);
	return rows[to]?.key ?? null;
}

/** What the cursor of a pane stands on, also before the operator has chosen anything. */
export const selectedKey = (state: ConsoleState, pane: PaneId): string | null =>
	rowsOf(state, pane).find(row => row.selected)?.key ?? null;

/** A process younger than this is most often gone before its answer comes. */
const SETTLED_S = 5;

/** The processes on screen or near it, for the looks between two full tables. Not those that have only just begun. */
export function visiblePids(state: ConsoleState, most = 12): readonly number[] {
	const facts = state.facts.processes?.last?.value;
	if (!facts) return [];
	const {rows} = selectProcesses(state);
	const at = Math.max(0, rows.findIndex(row => row.selected) - most / 2);
	const latest = facts.uptimeTicks - SETTLED_S * facts.ticksPerSecond;
	return rows
		.slice(at, at + most)
		.filter(({key}) => (identityOf(key).startTicks ?? latest) <= latest)
		.map(({pid}) => pid);
}
