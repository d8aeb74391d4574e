import type {ProcessFacts} from '../../ops/probes/processes.ts';
import type {ConsoleState, ProcessSort} from '../state.ts';
import {derive, settled} from './derive.ts';
import {type Face, face} from './face.ts';
import {factsOnScreen, nowOnScreen} from './on-screen.ts';
import {type ProcessRow, rowsOf} from './process-rows.ts';
import {treeOrder} from './tree.ts';

export type ProcessPaneModel = {
	readonly face: Face;
	readonly rows: readonly ProcessRow[];
	/** How many there are in all, and how many the filter leaves. */
	readonly total: number;
	readonly holders: number;
	readonly stuck: number;
	readonly complete: boolean;
	readonly filter: string;
	readonly sort: ProcessSort;
	readonly inverted: boolean;
	readonly tree: boolean;
};

const table = (state: ConsoleState): ProcessFacts | null => factsOnScreen(state).processes?.last?.value ?? null;

const anybodyStuck = derive([state => table(state)?.processes ?? null], processes =>
	(processes ?? []).some(process => process.stuckSince !== null),
);

const allRows = derive(
	[
		table,
		settled(state => factsOnScreen(state).holders?.last?.value.holders ?? []),
		settled(state =>
			(factsOnScreen(state).gpus?.last?.value.cards ?? []).map(({uuid, index}) => [uuid, index] as const),
		),
		state => factsOnScreen(state)['command-lines']?.last?.value.lines ?? null,
		// Against the table's own time: thousands of rows stay equal between two tables.
		state => (anybodyStuck(state) ? (factsOnScreen(state).processes?.last?.at ?? 0) : 0),
	],
	rowsOf,
);

const orderedRows = derive(
	[
		allRows,
		state => state.view.filter.processes,
		state => state.view.sort,
		state => state.view.tree,
		state => table(state)?.scannedAt ?? 0,
	],
	(rows, filter, sort, tree, _scannedAt) => {
		const left = rows.filter(matcher(filter));
		return tree ? treeOrder(left, compare(sort)) : left.toSorted(compare(sort));
	},
	inSamePlaces,
);

/** Apart from the clock: of thousands of rows none is looked at again when only a second has passed. */
const shownRows = derive([orderedRows, state => state.view.selected.processes], (rows, selected) => {
	const chosen = Math.max(
		0,
		rows.findIndex(row => row.key === selected),
	);
	const row = rows[chosen];
	return row ? rows.with(chosen, {...row, selected: true}) : rows;
});

const counts = derive([allRows], rows => ({
	total: rows.length,
	holders: rows.filter(row => row.holder).length,
	stuck: rows.filter(row => row.stuck).length,
}));

export const selectProcesses: (state: ConsoleState) => ProcessPaneModel = derive(
	[
		shownRows,
		counts,
		state => factsOnScreen(state).processes,
		nowOnScreen,
		state => state.view.filter.processes,
		state => state.view.sort,
		state => state.view.tree,
	],
	(rows, {total, holders, stuck}, reading, nowMs, filter, sort, tree) => ({
		face: face('processes', reading, nowMs),
		rows,
		total,
		holders,
		stuck,
		complete: reading?.last?.value.complete ?? true,
		filter,
		sort: sort.processes,
		inverted: sort.inverted,
		tree,
	}),
);

/**
 * Between two whole tables rows change their numbers and keep their places: thousands need not be sorted again, and none
 * jumps under the reader's eye. null where that does not hold: another question, other processes, others that matter.
 */
function inSamePlaces(
	[now, filter, ...asked]: Ordering,
	[then, , ...askedBefore]: Ordering,
	shown: readonly ProcessRow[],
): readonly ProcessRow[] | null {
	if (filter !== '' || now.length !== then.length || shown.length !== now.length) return null;
	if (asked.some((value, index) => !Object.is(value, askedBefore[index]))) return null;
	const changed = new Map<string, ProcessRow>();
	for (const [index, row] of now.entries()) {
		const old = then[index];
		if (row === old) continue;
		if (!old || PLACING.some(property => row[property] !== old[property])) return null;
		changed.set(row.key, row);
	}
	return shown.map(row => {
		const fresh = changed.get(row.key);
		return fresh ? {...fresh, gpuBytesBelow: row.gpuBytesBelow, depth: row.depth, lastChild: row.lastChild} : row;
	});
}

type Ordering = readonly [
	rows: readonly ProcessRow[],
	filter: string,
	sort: ConsoleState['view']['sort'],
	tree: boolean,
	scannedAt: number,
];

const PLACING = ['key', 'parentPid', 'holder', 'stuck', 'gpuBytes', 'command'] as const;

/** `text` anywhere in what the row says, `!text` nowhere. */
function matcher(filter: string): (row: ProcessRow) => boolean {
	const inverted = filter.startsWith('!');
	const text = (inverted ? filter.slice(1) : filter).toLowerCase();
	if (text === '') return () => true;
	return row =>
		`${row.pid} ${row.state} ${row.owner} ${row.command} ${row.waitChannel ?? ''}`.toLowerCase().includes(text) !==
		inverted;
}

type Order = (a: ProcessRow, b: ProcessRow) => number;

function compare(sort: ConsoleState['view']['sort']): Order {
	const by = ORDERS[sort.processes];
	const sign = sort.inverted ? -1 : 1;
	return (a, b) => sign * by(a, b) || a.pid - b.pid;
}

const urgency = (row: ProcessRow): number => (row.holder ? 2 : 0) + (row.stuck ? 1 : 0);

const ORDERS: Record<ProcessSort, Order> = {
	holders: (a, b) =>
		urgency(b) - urgency(a) ||
		(b.gpuBytesBelow ?? 0) - (a.gpuBytesBelow ?? 0) ||
		(b.cpuFraction ?? 0) - (a.cpuFraction ?? 0),
	cpu: (a, b) => (b.cpuFraction ?? -1) - (a.cpuFraction ?? -1),
	memory: (a, b) => (b.residentBytes ?? -1) - (a.residentBytes ?? -1),
	pid: (a, b) => a.pid - b.pid,
	name: (a, b) => a.command.localeCompare(b.command),
};
