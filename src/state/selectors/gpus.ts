import type {Reading} from '../../ops/facts.ts';
import type {Gpu, GpuFacts, LostGpu} from '../../ops/probes/gpus.ts';
import {holdersOf} from '../../ops/probes/held-memory.ts';
import type {HolderFacts} from '../../ops/probes/holders.ts';
import type {KernelFinding, KernelLogFacts} from '../../ops/probes/kernel-log.ts';
import type {Known} from '../../ops/probes/probe.ts';
import type {ProcessFacts} from '../../ops/probes/processes.ts';
import type {ConsoleState, History} from '../state.ts';
import {derive} from './derive.ts';
import {type Face, face, type Level} from './face.ts';
import {factsOnScreen, historyOnScreen, nowOnScreen} from './on-screen.ts';
import {holderWords} from './owners.ts';

export type GpuState = 'free' | 'busy' | 'held' | 'held idle' | 'lost' | 'needs reset' | 'unknown';

export type GpuRow = {
	/** The card's uuid; `lost:` and the bus for a card that has only a sentence. */
	readonly key: string;
	readonly index: number | null;
	readonly state: GpuState;
	readonly level: Level;
	readonly idleMs: number | null;
	readonly busyPercent: number | null;
	readonly usedBytes: number | null;
	readonly totalBytes: number | null;
	readonly sharedMemory: boolean;
	readonly temperatureCelsius: number | null;
	readonly slowdownCelsius: number | null;
	readonly powerWatts: number | null;
	readonly powerCapWatts: number | null;
	readonly smClockMhz: number | null;
	readonly pcie: {readonly generation: number | null; readonly width: number | null; readonly narrow: boolean};
	readonly eccUncorrected: number | null;
	readonly xid: number | null;
	readonly throttle: readonly string[];
	readonly heldBy: string;
	/** Busy percent of the last looks, newest last. */
	readonly trend: readonly (number | null)[];
	readonly selected: boolean;
};

export type GpuPaneModel = {
	readonly face: Face;
	readonly title: string;
	readonly rows: readonly GpuRow[];
	readonly sums: {
		readonly usedBytes: number | null;
		readonly totalBytes: number | null;
		readonly watts: number | null;
		readonly free: number;
		readonly heldIdle: number;
		readonly lost: number;
		readonly cards: number;
	};
};

/** Memory that counts as "somebody holds this card". */
const HELD_BYTES = 2 ** 30;
const IDLE_WARN_MS = 2 * 60_000;
const IDLE_BAD_MS = 10 * 60_000;

const gpuReading = (state: ConsoleState) => factsOnScreen(state).gpus;

const gpuCells = derive(
	[
		gpuReading,
		state => factsOnScreen(state).holders,
		state => factsOnScreen(state).processes,
		state => factsOnScreen(state)['kernel-log'],
		historyOnScreen,
	],
	gpuRows,
);

export const selectGpus: (state: ConsoleState) => GpuPaneModel = derive(
	[gpuReading, gpuCells, nowOnScreen, state => state.view.selected.gpu],
	(reading, cells, nowMs, selected) => {
		const chosen = cells.some(row => row.key === selected) ? selected : (cells[0]?.key ?? null);
		return {
			face: face('gpus', reading, nowMs),
			title: titleOf(reading?.last?.value ?? null),
			rows: cells.map(row => (row.key === chosen ? {...row, selected: true} : row)),
			sums: sumsOf(cells),
		};
	},
);

/** Lines to keep for cards: those that are there, else those that are to be. */
export const cardLines = (state: ConsoleState): number =>
	selectGpus(state).rows.length || state.target.expect.gpus || 1;

function gpuRows(
	reading: Reading<GpuFacts> | null,
	holders: Reading<HolderFacts> | null,
	processes: Reading<ProcessFacts> | null,
	kernel: Reading<KernelLogFacts> | null,
	history: History,
): readonly GpuRow[] {
	const facts = reading?.last?.value;
	if (!facts) return [];
	const table = processes?.last?.value ?? null;
	const findings = kernel?.last?.value.findings ?? [];
	const shown = facts.cards.map(gpu => {
		const trend = history.gpus.get(gpu.uuid)?.busyPercent ?? [];
		const idleMs = idleFor(gpu, history);
		const state = stateOf(gpu, idleMs);
		return {
			...numbersOf(gpu),
			state,
			idleMs: state === 'held idle' ? idleMs : null,
			level: levelOf(state, idleMs),
			xid: lastXid(gpu.busId, findings),
			heldBy: heldBy(gpu, state, holders, table),
			trend,
			selected: false,
		};
	});
	return [...shown, ...facts.lost.map(lostRow)];
}

const value = (cell: Known<number>): number | null => (cell.known ? cell.value : null);

function numbersOf(gpu: Gpu) {
	const [width, widest] = [value(gpu.pcieWidth), value(gpu.pcieWidthMax)];
	return {
		key: gpu.uuid,
		index: gpu.index,
		busyPercent: value(gpu.busyPercent),
		usedBytes: value(gpu.memoryUsedBytes),
		totalBytes: value(gpu.memoryTotalBytes),
		sharedMemory: gpu.sharedMemory,
		temperatureCelsius: value(gpu.temperatureCelsius),
		slowdownCelsius: value(gpu.slowdownCelsius),
		powerWatts: value(gpu.powerWatts),
		powerCapWatts: value(gpu.powerCapWatts),
		smClockMhz: value(gpu.smClockMhz),
		// The generation drops by itself on an idle card; a missing lane does not come back.
		pcie: {generation: value(gpu.pcieGeneration), width, narrow: width !== null && widest !== null && width < widest},
		eccUncorrected: value(gpu.eccUncorrected),
		throttle: gpu.throttle.known ? gpu.throttle.value : [],
	};
}

function stateOf(gpu: Gpu, idleMs: number | null): GpuState {
	if (gpu.needsReset) return 'needs reset';
	const used = value(gpu.memoryUsedBytes);
	if (used === null) return 'unknown';
	const busy = value(gpu.busyPercent);
	if (gpu.sharedMemory || used < HELD_BYTES) return busy !== null && busy > 0 ? 'busy' : 'free';
	if (busy === null || idleMs === null) return 'held';
	if (busy > 0) return 'busy';
	return idleMs >= IDLE_WARN_MS ? 'held idle' : 'held';
}

function levelOf(state: GpuState, idleMs: number | null): Level {
	switch (state) {
		case 'lost':
		case 'needs reset':
			return 'bad';
		case 'held idle':
			return (idleMs ?? 0) >= IDLE_BAD_MS ? 'bad' : 'warn';
		case 'unknown':
			return 'warn';
		case 'busy':
			return 'good';
		case 'free':
		case 'held':
			return 'plain';
	}
}

/** How long the card has answered 0 % without a break; null when the newest look did not tell. */
function idleFor(gpu: Gpu, history: History): number | null {
	if (!gpu.busyPercent.known) return null;
	const busy = history.gpus.get(gpu.uuid)?.busyPercent ?? [];
	let since = history.at.at(-1) ?? 0;
	for (let back = 1; back <= Math.min(busy.length, history.at.length); back++) {
		if (busy.at(-back) !== 0) break;
		since = history.at.at(-back) ?? since;
	}
	return Math.max(0, (history.at.at(-1) ?? 0) - since);
}

function lastXid(busId: string, findings: readonly KernelFinding[]): number | null {
	return findings.findLast(finding => finding.kind === 'xid' && finding.busId === busId)?.xid ?? null;
}

function heldBy(gpu: Gpu, state: GpuState, holders: Reading<HolderFacts> | null, table: ProcessFacts | null): string {
	const facts = holders?.last?.value ?? null;
	if (facts === null) return state === 'free' ? '' : 'not known';
	const names = [...new Set(holdersOf(gpu, facts).map(holder => holderWords(holder, table)))];
	const [first, ...rest] = names;
	if (first !== undefined) return rest.length > 0 ? `${first} +${rest.length}` : first;
	if (state === 'free' || state === 'unknown' || state === 'needs reset') return '';
	return facts.driverList === 'unresolvable' ? 'a pid not visible here' : 'no visible process';
}

function lostRow(lost: LostGpu): GpuRow {
	return {
		key: `lost:${lost.busId}`,
		index: null,
		state: 'lost',
		level: 'bad',
		idleMs: null,
		busyPercent: null,
		usedBytes: null,
		totalBytes: null,
		sharedMemory: false,
		temperatureCelsius: null,
		slowdownCelsius: null,
		powerWatts: null,
		powerCapWatts: null,
		smClockMhz: null,
		pcie: {generation: null, width: null, narrow: false},
		eccUncorrected: null,
		xid: null,
		throttle: [],
		heldBy: `${lost.busId}: ${lost.says}`,
		trend: [],
		selected: false,
	};
}

function titleOf(facts: GpuFacts | null): string {
	const names = new Map<string, number>();
	for (const {name} of facts?.cards ?? []) names.set(name, (names.get(name) ?? 0) + 1);
	return [...names].map(([name, times]) => `${times}x ${name.replace(/^NVIDIA /, '')}`).join(' + ');
}

function sumsOf(rows: readonly GpuRow[]): GpuPaneModel['sums'] {
	const sum = (pick: (row: GpuRow) => number | null): number | null => {
		const told = rows.map(pick).filter(one => one !== null);
		return told.length === 0 ? null : told.reduce((total, one) => total + one, 0);
	};
	const are = (state: GpuState): number => rows.filter(row => row.state === state).length;
	return {
		usedBytes: sum(row => row.usedBytes),
		totalBytes: sum(row => row.totalBytes),
		watts: sum(row => row.powerWatts),
		free: are('free'),
		heldIdle: are('held idle'),
		lost: are('lost'),
		cards: rows.length,
	};
}
