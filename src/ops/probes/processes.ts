import {splitStat} from '../formats/proc-stat.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {cpuMs} from '../formats/shell-times.ts';
import {ParseError} from '../outcome.ts';
import {type Answer, identityKey, type Probe, type ProbeContext} from './probe.ts';
import {byPid, merge, processOf, readDetails, update} from './process-table.ts';

/** Processes of the host's pid namespace, by pid. `cpuTicks` is cumulative: a rate needs two readings (`previous`). */
export type ProcessFacts = {
	readonly bootId: string;
	/** false with hidepid or a table without pid 1: only own processes are visible. */
	readonly complete: boolean;
	readonly ticksPerSecond: number;
	/** Host uptime in ticks when the table was read, for ages. */
	readonly uptimeTicks: number;
	/** Sorted by pid. */
	readonly processes: readonly Process[];
	/** CPU fraction (0–1 of one core, may exceed 1) by identityKey, from this and the previous table. */
	readonly cpuFraction: ReadonlyMap<string, number>;
	/** CPU the far side spent on the last full scan, to pace the next one; and when that scan was asked for. */
	readonly scanMs: number;
	readonly scannedAt: number;
	/** Host uptime in ticks at which each pid was last read: between full scans only some are. */
	readonly readAtTicks: ReadonlyMap<number, number>;
};

export type Process = {
	readonly pid: number;
	readonly startTicks: number;
	readonly parentPid: number;
	/** From stat: at most 15 bytes, raw (neutralise before drawing). */
	readonly name: string;
	/** R S D Z T t X I. */
	readonly state: string;
	readonly sessionId: number;
	readonly groupId: number;
	readonly cpuTicks: number;
	readonly threads: number;
	readonly residentBytes: number;
	readonly owner: Owner;
	readonly waitChannel: string | null;
	/** A SIGKILL is already pending: killing again changes nothing. */
	readonly killPending: boolean;
	/** Same state and wait channel in every table since (epoch ms); null when it moves, or is neither frozen nor waits for storage. */
	readonly stuckSince: number | null;
};

/** Who keeps this process, from its cgroup: what has to be stopped instead of the process. */
export type Owner =
	| {readonly kind: 'unit'; readonly unit: string}
	| {readonly kind: 'user-unit'; readonly unit: string; readonly uid: number}
	| {readonly kind: 'session'; readonly session: string}
	| {readonly kind: 'container'; readonly engine: string; readonly id: string}
	| {readonly kind: 'guest'; readonly guest: string; readonly unit: string | null}
	| {readonly kind: 'none'}
	| {readonly kind: 'unknown'};

const SCAN_EVERY_MS = 2000;
/** The far side's half alone is measured; reading and drawing the table costs about as much here. */
const SCAN_COST_FACTOR = 300;
const MOST_NAMED = 48;
/** Bounds that keep the script below 2 KB with pids of seven digits. */
const MOST_CGROUPS = 48;
const MOST_WAITING = 32;
/** Sleeping processes whose wait channel is looked at in turn: one that waits for a dead FUSE server is S, not D. */
const SLEEPERS_A_SCAN = 16;

const SECTIONS = ['host', 'stat', 'times', 'details', 'pending'] as const;

/**
 * The whole table no sooner than 300 × what the last scan cost, else the hinted pids and pid 1 alone. Exit status and
 * messages mean nothing here: processes end while they are read. Cgroups once per new process, wait channels for what is
 * stuck, hinted, or next in turn (all of both with the first look), pending signals for what is stuck. Source: `head -qc
 * 4096` of /proc/N/stat (never a line reader: names hold newlines), /proc/N/{cgroup,wchan,status}; fixtures/proc-stat.
 */
export const processes: Probe<ProcessFacts> = {
	id: 'processes',
	lane: 'processes',
	everyMs: 2000,
	/** Drawing thousands of rows again costs more than looking at a few of them. */
	paceMs: ({processes}) => (processes.length > 2_000 ? 4_000 : 2_000),
	limitMs: 10_000,
	capBytes: 8_388_608,
	script: context => {
		const {last} = context;
		const all = last === null;
		const stat = isFullScan(context) ? 'a=[0-9]*/stat' : `f stat ${namedPids(context).join(' ')}`;
		const details = all
			? "a='[0-9]*/cgroup [0-9]*/wchan'"
			: `f cgroup ${pidsWithoutOwner(last).join(' ')}; f wchan ${waitingPids(context).join(' ')}`;
		const pending = pendingPids(context);
		return [
			DEFINE_MARK,
			`cd "$PROC" || exit 3; f() { e=$1; shift; for p; do a="$a $p/$e"; done; }; ${mark('host')}`,
			`read -r b <sys/kernel/random/boot_id; read -r u r <uptime; echo "$b $u ${all ? '$(getconf CLK_TCK)' : last.ticksPerSecond}"`,
			`${mark('stat')}; a=; ${stat}; head -qc 4096 $a 2>/dev/null; ${mark('times')}; times`,
			`${mark('details')}; a=; ${details}; head -vc 4096 $a 2>/dev/null`,
			`${mark('pending')}; a=; ${pending.length === 0 ? '' : `f status ${pending.join(' ')}; grep -HsE '^(SigPnd|ShdPnd):' $a;`} true`,
		].join('\n');
	},
	parse: parseProcesses,
};

const isFullScan = ({last, hints}: ProbeContext<ProcessFacts>): boolean =>
	last === null || hints.nowMs - last.scannedAt >= Math.max(SCAN_EVERY_MS, SCAN_COST_FACTOR * last.scanMs);

const namedPids = ({hints}: ProbeContext<ProcessFacts>): readonly number[] =>
	[...new Set([1, ...hints.pids])].slice(0, MOST_NAMED);

const pidsWithoutOwner = (last: ProcessFacts): readonly number[] =>
	last.processes
		.filter(process => process.owner.kind === 'unknown' && process.state !== 'Z')
		.slice(0, MOST_CGROUPS)
		.map(process => process.pid);

/** Whoever waits for what may never come: only there a signal can stay pending. */
const isSuspicious = ({state, stuckSince, killPending}: Process): boolean =>
	state === 'D' || stuckSince !== null || killPending;

const pendingPids = ({last}: ProbeContext<ProcessFacts>): readonly number[] =>
	(last?.processes ?? [])
		.filter(isSuspicious)
		.slice(0, MOST_WAITING)
		.map(({pid}) => pid);

function waitingPids({last, hints}: ProbeContext<ProcessFacts>): readonly number[] {
	const table = last?.processes ?? [];
	const sleepers = table.filter(process => process.state === 'S' && process.parentPid !== 2);
	const turn = Math.floor(hints.nowMs / SCAN_EVERY_MS) * SLEEPERS_A_SCAN;
	const inTurn = sleepers.length === 0 ? [] : [...sleepers, ...sleepers].slice(turn % sleepers.length);
	const urgent = [...table.filter(isSuspicious).map(({pid}) => pid), ...hints.pids].slice(0, MOST_WAITING);
	return [...new Set([...urgent, ...inTurn.slice(0, SLEEPERS_A_SCAN).map(({pid}) => pid)])];
}

function parseProcesses(answer: Answer, context: ProbeContext<ProcessFacts>): ProcessFacts {
	const {last, hints} = context;
	const sections = readSections('processes', answer.stdout, SECTIONS);
	const [bootId = '', uptime = '', ticks = ''] = sections.host.trim().split(' ');
	const ticksPerSecond = Number(ticks);
	const uptimeTicks = Math.round(Number(uptime) * ticksPerSecond);
	if (bootId === '' || !(uptimeTicks > 0)) throw new ParseError('/proc', sections.host.trim());
	const full = isFullScan(context);
	/** After a boot the same pid and ticks may be another process: nothing of the old table counts. */
	const before = last?.bootId === bootId ? last : null;
	const named = full ? null : new Set(namedPids(context));
	const details = readDetails(sections.details, sections.pending, hints.nowMs);
	const read = splitStat(sections.stat).map(record => update(record, before?.processes ?? [], details));
	const readPids = new Set(read.map(process => process.pid));
	const table = full || !before ? read.sort(byPid) : merge(before.processes, read, named ?? new Set(), details);
	return {
		bootId,
		complete: full ? readPids.has(1) : (before?.complete ?? false),
		ticksPerSecond,
		uptimeTicks,
		processes: table,
		cpuFraction: cpuFractions(read, before, uptimeTicks, full),
		scanMs: full ? cpuMs(sections.times) : (before?.scanMs ?? 0),
		scannedAt: full ? hints.nowMs : (before?.scannedAt ?? hints.nowMs),
		readAtTicks: readTimes(read, before, uptimeTicks, full),
	};
}

function cpuFractions(
	read: readonly Process[],
	before: ProcessFacts | null,
	uptimeTicks: number,
	full: boolean,
): ReadonlyMap<string, number> {
	if (!before) return new Map();
	const fractions = new Map(full ? [] : before.cpuFraction);
	for (const process of read) {
		const key = identityKey(process);
		const then = processOf(before.processes, process);
		if (!then) continue;
		const elapsed = uptimeTicks - (before.readAtTicks.get(process.pid) ?? uptimeTicks);
		const fraction =
			elapsed > 0 ? Math.max(0, (process.cpuTicks - then.cpuTicks) / elapsed) : before.cpuFraction.get(key);
		if (fraction !== undefined) fractions.set(key, fraction);
	}
	return fractions;
}

function readTimes(
	read: readonly Process[],
	before: ProcessFacts | null,
	uptimeTicks: number,
	full: boolean,
): ReadonlyMap<number, number> {
	const times = new Map(full || !before ? [] : before.readAtTicks);
	for (const {pid} of read) times.set(pid, uptimeTicks);
	return times;
}
