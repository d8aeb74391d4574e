import {ownerOf} from '../formats/cgroup.ts';
import {readHeaded} from '../formats/headed-files.ts';
import {type ProcStat, parseStat} from '../formats/proc-stat.ts';
import type {Process} from './processes.ts';
import {stuckSince} from './stuck.ts';

const PAGE_BYTES = 4096;

export const byPid = (one: Process, other: Process) => one.pid - other.pid;

/** The process of that pid, null when the table has none. In some steps: tables are sorted by pid, and long. */
export function processAt(processes: readonly Process[], pid: number): Process | null {
	let [from, to] = [0, processes.length];
	while (from < to) {
		const middle = (from + to) >> 1;
		if ((processes[middle]?.pid ?? 0) < pid) from = middle + 1;
		else to = middle;
	}
	const found = processes[from];
	return found?.pid === pid ? found : null;
}

/** The process of that identity, null when the table has none. */
export function processOf(
	processes: readonly Process[],
	{pid, startTicks}: {readonly pid: number; readonly startTicks: number | null},
): Process | null {
	const found = processAt(processes, pid);
	return found?.startTicks === startTicks ? found : null;
}

/**
 * A short look into the table: those stay that were not asked for; one that was asked for and did not answer is gone. The
 * very same array when nothing changed, so that of thousands of rows none is looked at again.
 */
export function merge(
	before: readonly Process[],
	read: readonly Process[],
	named: ReadonlySet<number>,
	details: Details,
): readonly Process[] {
	const fresh = new Map(read.map(process => [process.pid, process]));
	let same = true;
	const table: Process[] = [];
	for (const old of before) {
		const now = fresh.get(old.pid) ?? (named.has(old.pid) ? null : refresh(old, details));
		fresh.delete(old.pid);
		if (now !== old) same = false;
		if (now) table.push(now);
	}
	if (fresh.size > 0) return [...table, ...fresh.values()].sort(byPid);
	return same ? before : table;
}

type Details = {
	/** `9/cgroup` and `9/wchan`. */
	readonly headed: ReadonlyMap<string, string>;
	/** Only pids that were asked. */
	readonly killPending: ReadonlyMap<number, boolean>;
	/** Of whom any of this tells: a few dozen of thousands. */
	readonly told: ReadonlySet<number>;
	readonly nowMs: number;
};

export function readDetails(files: string, pending: string, nowMs: number): Details {
	const headed = readHeaded(files);
	const killPending = readPending(pending);
	const told = new Set([...[...headed.keys()].map(name => Number.parseInt(name, 10)), ...killPending.keys()]);
	return {headed, killPending, told, nowMs};
}

/** Raw record of an object made here: a sleeping process prints the same bytes again, and then stays the same object. */
const records = new WeakMap<Process, string>();

export function update(record: string, known: readonly Process[], details: Details): Process {
	const candidate = processAt(known, Number.parseInt(record, 10));
	if (candidate && records.get(candidate) === record) return refresh(candidate, details);
	const stat = parseStat(record);
	const before = candidate?.startTicks === stat.startTicks ? candidate : null;
	const process = toProcess(stat, before, details);
	records.set(process, record);
	return process;
}

function toProcess(stat: ProcStat, before: Process | null, details: Details): Process {
	const {residentPages, ...fields} = stat;
	const process: Process = {
		...fields,
		residentBytes: residentPages * PAGE_BYTES,
		owner: before?.owner ?? {kind: 'unknown'},
		waitChannel: before?.waitChannel ?? null,
		killPending: before?.killPending ?? false,
		stuckSince: null,
	};
	const detailed = withDetails(process, details);
	return {...detailed, stuckSince: stuckSince(before, detailed, details.nowMs)};
}

/** The same object unless a detail was learned. */
function refresh(process: Process, details: Details): Process {
	if (!details.told.has(process.pid)) return process;
	const detailed = withDetails(process, details);
	const since = stuckSince(process, detailed, details.nowMs);
	if (detailed === process && since === process.stuckSince) return process;
	const changed = {...detailed, stuckSince: since};
	const record = records.get(process);
	if (record !== undefined) records.set(changed, record);
	return changed;
}

function withDetails(process: Process, {headed, killPending}: Details): Process {
	const cgroup = process.owner.kind === 'unknown' ? headed.get(`${process.pid}/cgroup`) : undefined;
	const owner = cgroup === undefined ? process.owner : ownerOf(cgroup);
	const wait = headed.get(`${process.pid}/wchan`);
	/** `0` is what the kernel prints for a task that runs. */
	const waitChannel = wait === undefined ? process.waitChannel : wait.trim() === '0' ? null : wait.trim() || null;
	const pending = killPending.get(process.pid) ?? process.killPending;
	if (owner === process.owner && waitChannel === process.waitChannel && pending === process.killPending) return process;
	return {...process, owner, waitChannel, killPending: pending};
}

const SIGKILL_BIT = 0x100n;

/** `20262/status:SigPnd:\t0000000000000100`: pending for the thread or for the whole process. */
function readPending(text: string): ReadonlyMap<number, boolean> {
	const pending = new Map<number, boolean>();
	for (const [, pid, mask] of text.matchAll(/^(\d+)\/status:\w+:\s+([0-9a-f]+)$/gm)) {
		const has = (BigInt(`0x${mask}`) & SIGKILL_BIT) !== 0n;
		pending.set(Number(pid), has || (pending.get(Number(pid)) ?? false));
	}
	return pending;
}
