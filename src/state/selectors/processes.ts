import type {Holder} from '../../ops/probes/holders.ts';
import {identityKey} from '../../ops/probes/probe.ts';
import type {Process, ProcessFacts} from '../../ops/probes/processes.ts';
import {redact} from '../../ops/redact.ts';
import type {ConsoleState, ProcessSort} from '../state.ts';
import {derive, settled} from './derive.ts';
import {type Face, face, type Level} from './face.ts';
import {factsOnScreen, nowOnScreen} from './on-screen.ts';
import {ownerName, processKey} from './owners.ts';
import {treeOrder} from './tree.ts';

export type ProcessRow = {
	/** identityKey; `pid@?` for a holder whose process is not in this pid namespace. */
	readonly key: string;
	readonly pid: number;
	readonly parentPid: number | null;
	/** As /proc says it; `?` where the process cannot be seen. */
	readonly state: string;
	readonly level: Level;
	readonly cpuFraction: number | null;
	readonly residentBytes: number | null;
	/** Card numbers it holds, `0-7`; '' for none. */
	readonly cards: string;
	readonly gpuBytes: number | null;
	/** Own memory and that of the rows below it, where the tree is drawn. */
	readonly gpuBytesBelow: number | null;
	readonly owner: string;
	readonly command: string;
	readonly waitChannel: string | null;
	readonly stuckMs: number | null;
	readonly holder: boolean;
	readonly stuck: boolean;
	readonly killPending: boolean;
	readonly depth: number;
	readonly lastChild: boolean;
	readonly selected: boolean;
};

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

/** A wait this long in one place is no ordinary disk read. */
export const STUCK_MS = 5_000;

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

function rowsOf(
	table: ProcessFacts | null,
	holding: readonly Holder[],
	cards: readonly (readonly [uuid: string, index: number])[],
	lines: ReadonlyMap<string, string | null> | null,
	readAt: number,
): readonly ProcessRow[] {
	const holders = new Map(holding.map(holder => [processKey(holder), holder]));
	const cardOf = new Map(cards);
	const rows: ProcessRow[] = [];
	for (const process of table?.processes ?? []) {
		const key = identityKey(process);
		const holder = holders.get(key) ?? null;
		holders.delete(key);
		const stuckMs =
			process.state === 'D' && process.stuckSince !== null ? Math.max(0, readAt - process.stuckSince) : null;
		// Kernel threads are noise here unless one of them hangs.
		const kernel = process.pid === 2 || process.parentPid === 2;
		if (kernel && (stuckMs ?? 0) < STUCK_MS) continue;
		const told = {cpuFraction: table?.cpuFraction.get(key) ?? null, line: lines?.get(key)};
		if (holder === null && stuckMs === null) rows.push(idleRow(process, key, told));
		else rows.push({...rowOf(process, key, told, stuckMs), ...heldBy(holder, cardOf)});
	}
	for (const [key, holder] of holders) rows.push(unseen(key, holder, cardOf));
	return rows;
}

type Told = {readonly cpuFraction: number | null; readonly line: string | null | undefined};

/** A process that did not move is the same object in the next table: of thousands, a few dozen rows are made anew. */
const idleRows = new WeakMap<Process, {readonly told: Told; readonly row: ProcessRow}>();

function idleRow(process: Process, key: string, told: Told): ProcessRow {
	const before = idleRows.get(process);
	if (before && before.told.cpuFraction === told.cpuFraction && before.told.line === told.line) return before.row;
	const row = rowOf(process, key, told, null);
	idleRows.set(process, {told, row});
	return row;
}

function rowOf(process: Process, key: string, {cpuFraction, line}: Told, stuckMs: number | null): ProcessRow {
	const stuck = stuckMs !== null && stuckMs >= STUCK_MS;
	return {
		key,
		pid: process.pid,
		parentPid: process.parentPid,
		state: process.state,
		level: levelOf(process, stuck),
		cpuFraction,
		residentBytes: process.residentBytes,
		cards: '',
		gpuBytes: null,
		gpuBytesBelow: null,
		owner: ownerName(process.owner) ?? (process.owner.kind === 'unknown' ? 'unknown' : '-'),
		command: commandOf(process, line),
		waitChannel: process.waitChannel,
		stuckMs,
		holder: false,
		stuck,
		killPending: process.killPending,
		depth: 0,
		lastChild: false,
		selected: false,
	};
}

function heldBy(holder: Holder | null, cardOf: ReadonlyMap<string, number>) {
	const charged = (holder?.memory ?? []).map(({gpuUuid}) => cardOf.get(gpuUuid)).filter(card => card !== undefined);
	const opened = (holder?.devices ?? [])
		.map(name => /^nvidia(\d+)$/.exec(name)?.[1])
		.filter(card => card !== undefined)
		.map(Number);
	const told = (holder?.memory ?? []).flatMap(({usedBytes}) => (usedBytes.known ? [usedBytes.value] : []));
	const gpuBytes = told.length > 0 ? told.reduce((sum, one) => sum + one, 0) : null;
	return {
		cards: ranges(charged.length > 0 ? charged : opened),
		gpuBytes,
		gpuBytesBelow: gpuBytes,
		holder: holder !== null,
	};
}

/** `0-7`, `0,2-3`. */
function ranges(numbers: readonly number[]): string {
	const parts: [number, number][] = [];
	for (const one of [...new Set(numbers)].toSorted((a, b) => a - b)) {
		const open = parts.at(-1);
		if (open && open[1] === one - 1) open[1] = one;
		else parts.push([one, one]);
	}
	return parts.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}

function unseen(key: string, holder: Holder, cardOf: ReadonlyMap<string, number>): ProcessRow {
	return {
		...heldBy(holder, cardOf),
		key,
		pid: holder.pid,
		parentPid: null,
		state: '?',
		level: 'warn',
		cpuFraction: null,
		residentBytes: null,
		owner: 'not visible here',
		command:
			holder.startTicks === null
				? `${holder.driverName || 'a pid'} (not in this pid namespace, or gone)`
				: holder.driverName,
		waitChannel: null,
		stuckMs: null,
		stuck: false,
		killPending: false,
		depth: 0,
		lastChild: false,
		selected: false,
	};
}

function levelOf(process: Process, stuck: boolean): Level {
	if (stuck) return 'bad';
	if (process.state === 'D' || process.killPending) return 'warn';
	if (process.state === 'Z' || process.state === 'X') return 'dim';
	return 'plain';
}

function commandOf(process: Process, line: string | null | undefined): string {
	if (line === null) return `${process.name} (command line unavailable)`;
	return line === undefined || line === '' ? process.name : redact(line);
}

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
