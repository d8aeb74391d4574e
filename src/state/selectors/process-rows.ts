import type {Holder} from '../../ops/probes/holders.ts';
import {identityKey} from '../../ops/probes/probe.ts';
import type {Process, ProcessFacts} from '../../ops/probes/processes.ts';
import {redact} from '../../ops/redact.ts';
import type {Level} from './face.ts';
import {ownerName, processKey} from './owners.ts';

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

/** A wait this long in one place is no ordinary disk read. */
export const STUCK_MS = 5_000;

/** One row for each process that is worth one, holders that cannot be seen here at the end; in no order of its own. */
export function rowsOf(
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
		const key = idleRows.get(process)?.row.key ?? identityKey(process);
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
