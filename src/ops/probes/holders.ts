import {readQuery, smiBytes} from '../formats/nvidia-smi.ts';
import {startTicksByPid} from '../formats/proc-stat.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {cpuMs} from '../formats/shell-times.ts';
import {ParseError} from '../outcome.ts';
import {captureLines} from './capture.ts';
import type {Answer, Known, Probe, ProbeContext} from './probe.ts';
import {stuckPid, unlessStuck} from './stuck-tool.ts';

/**
 * Who holds GPU memory: what the driver lists (compute-apps) and who has /dev/nvidia* open ($PROC/N/fd links), side by
 * side, by pid. `startTicks` null: the pid is not in this pid namespace or gone, so it must never be signalled from here.
 */
export type HolderFacts = {
	readonly bootId: string;
	readonly holders: readonly Holder[];
	/**
	 * `none`: the driver says that nothing runs. `unresolvable`: its panel is empty rather than "none": pids exist that
	 * cannot be resolved here. `no answer`: the driver could not be asked, so only device links count.
	 */
	readonly driverList: 'listed' | 'none' | 'unresolvable' | 'no answer';
	/** When all processes were last searched for device links (epoch ms), and what that cost the far side. */
	readonly sweptAt: number;
	readonly sweepMs: number;
	/** Pids that were searched then or one by one since: what has no device open is not asked at every look. */
	readonly searched: readonly number[];
};

export type Holder = {
	readonly pid: number;
	readonly startTicks: number | null;
	/** One entry per card the driver charges to this pid. */
	readonly memory: readonly {readonly gpuUuid: string; readonly usedBytes: Known<number>}[];
	/** Device nodes open, as names below $DEV (`nvidia0`, `nvidiactl`). Empty when only the driver names this pid. */
	readonly devices: readonly string[];
	/** As the driver prints it; '' when only device links show it. */
	readonly driverName: string;
};

const APPS = ['gpu_uuid', 'pid', 'used_memory', 'process_name'] as const;
const SECTIONS = ['boot', 'links', 'times', 'apps', 'apps-status', 'panel', 'stat'] as const;

const SWEEP_EVERY_MS = 10_000;
const SWEEP_COST_FACTOR = 400;
/** Keeps the script below 2 KB. */
const MOST_SEARCHED = 48;

/**
 * Device links first, for they answer also when the driver does not; then compute-apps behind its own limit; then the start
 * ticks of every pid that came up. All processes are searched in a sweep no sooner than 10 s or 400 × its cost; between
 * sweeps only hinted pids that are new. A known holder keeps its devices until then while its start ticks stay the same;
 * where the driver is stuck, and so nothing else tells, it is searched each time.
 */
export const holders: Probe<HolderFacts> = {
	id: 'holders',
	lane: 'driver',
	everyMs: 2000,
	limitMs: 14_000,
	capBytes: 1_048_576,
	script: context => {
		const {hints} = context;
		const sweep = isSweep(context);
		const where = sweep
			? '[0-9]*/fd'
			: searchedPids(context)
					.map(pid => `${pid}/fd`)
					.join(' ');
		const find = `find ${where} -lname "$DEV/nvidia*" -printf '%h %l\\n' 2>/dev/null`;
		const query = `nvidia-smi --query-compute-apps=${APPS.join(',')} --format=csv,noheader,nounits`;
		return [
			DEFINE_MARK,
			`cd "$PROC" || exit 3; ${mark('boot')}; read -r b <sys/kernel/random/boot_id; echo "$b $DEV"`,
			`f=${where === '' ? '' : `$(${find})`}; ${mark('links')}; pr "$f"; ${mark('times')}; times`,
			unlessStuck(
				'nvidia-smi',
				hints.stuckPids,
				[
					captureLines('a', 5, query, String(hints.nowMs)),
					`${mark('apps')}; pr "$a"; ${mark('apps-status')}; echo $r; ${mark('panel')}`,
					sweep ? `[ $r-"$a" = 0- ] && timeout -k 1 5 nvidia-smi 2>&1 | sed -n '/Processes:/,$p'` : '',
					`set -f; s='${[...keptHolders(context).keys()].map(pid => ` ${pid}/stat`).join('')}'`,
					'add() { case $1 in \'\'|*[!0-9]*) return ;; esac; case "$s " in *" $1/stat "*) ;; *) s="$s $1/stat" ;; esac; }',
					"IFS='\n'; for l in $f; do add ${l%%/*}; done; for l in $a; do l=${l#*,}; l=${l%%,*}; add ${l# }; done; unset IFS",
					`${mark('stat')}; [ -z "$s" ] || head -qc 4096 $s 2>/dev/null; true`,
				].join('\n'),
			),
		].join('\n');
	},
	parse: parseHolders,
};

const isSweep = ({last, hints}: ProbeContext<HolderFacts>): boolean =>
	last === null || hints.nowMs - last.sweptAt >= Math.max(SWEEP_EVERY_MS, SWEEP_COST_FACTOR * last.sweepMs);

function searchedPids(context: ProbeContext<HolderFacts>): readonly number[] {
	const {last, hints} = context;
	const kept = keptHolders(context);
	const known = new Set([...kept.keys(), ...(last?.searched ?? [])]);
	const held = (last?.holders ?? []).flatMap(({pid, startTicks}) => (startTicks === null ? [] : [pid]));
	const fresh = [...held, ...hints.pids].filter(pid => hints.stuckPids.length > 0 || !known.has(pid));
	return [...new Set(fresh)].slice(0, MOST_SEARCHED);
}

/** Holders whose devices stand until the next sweep, by pid. */
function keptHolders(context: ProbeContext<HolderFacts>): ReadonlyMap<number, Holder> {
	const {last, hints} = context;
	if (last === null || isSweep(context) || hints.stuckPids.length > 0) return new Map();
	const kept = last.holders.filter(({startTicks, devices}) => startTicks !== null && devices.length > 0);
	return new Map(kept.slice(0, MOST_SEARCHED).map(holder => [holder.pid, holder]));
}

function parseHolders(answer: Answer, context: ProbeContext<HolderFacts>): HolderFacts {
	const {last, hints} = context;
	const silent = stuckPid(answer.status, answer.stdout) !== null;
	const names = silent ? SECTIONS.slice(0, 3) : SECTIONS;
	const sections: Readonly<Record<string, string>> = readSections('gpu holders', answer.stdout, names);
	const [bootId = '', ...dev] = (sections.boot ?? '').trim().split(' ');
	if (bootId === '') throw new ParseError('boot_id', sections.boot ?? '');
	const status = silent ? 124 : Number(sections['apps-status']);
	const apps = status === 0 ? readQuery(sections.apps ?? '', APPS) : {rows: [], notes: []};
	/** While the driver is silent nobody can say what start ticks its pids have: those known by device links keep theirs. */
	const ticks = silent
		? new Map(
				(last?.holders ?? []).flatMap(holder => (holder.startTicks === null ? [] : [[holder.pid, holder.startTicks]])),
			)
		: startTicksByPid(sections.stat ?? '');
	const swept = isSweep(context);
	const links = readLinks(sections.links ?? '', dev.join(' '));
	for (const [pid, {startTicks, devices}] of keptHolders(context))
		if (last?.bootId === bootId && ticks.get(pid) === startTicks) links.push(...devices.map(device => ({pid, device})));
	return {
		bootId,
		holders: mergeHolders(links, apps.rows, ticks),
		driverList: driverListOf(status, apps.rows.length, sections.panel ?? '', last),
		sweptAt: swept ? hints.nowMs : (last?.sweptAt ?? hints.nowMs),
		sweepMs: swept ? cpuMs(sections.times ?? '') : (last?.sweepMs ?? 0),
		searched: swept ? hints.pids : [...new Set([...(last?.searched ?? []), ...searchedPids(context)])],
	};
}

type DeviceLink = {readonly pid: number; readonly device: string};

/** `123/fd /dev/nvidia0` → pid and the node's name below $DEV. */
export function readLinks(text: string, dev: string): DeviceLink[] {
	return text
		.split('\n')
		.filter(line => line !== '')
		.map(line => {
			const match = /^(\d+)\/fd (.+)$/.exec(line);
			if (!match) throw new ParseError('find', line);
			const [, pid = '', target = ''] = match;
			return {pid: Number(pid), device: target.startsWith(`${dev}/`) ? target.slice(dev.length + 1) : target};
		});
}

/** Both lists as one, by pid; a pid under several nodes or cards counts once. */
export function mergeHolders(
	links: readonly DeviceLink[],
	apps: readonly ReadonlyMap<string, string>[],
	ticks: ReadonlyMap<number, number>,
): readonly Holder[] {
	const byPid = new Map<number, {memory: Holder['memory'][number][]; devices: string[]; driverName: string}>();
	const entry = (pid: number) => {
		const found = byPid.get(pid) ?? {memory: [], devices: [], driverName: ''};
		byPid.set(pid, found);
		return found;
	};
	for (const {pid, device} of links) entry(pid).devices.push(device);
	for (const row of apps) {
		const pid = Number(row.get('pid'));
		if (!Number.isInteger(pid) || pid < 1) continue;
		const holder = entry(pid);
		holder.memory.push({
			gpuUuid: row.get('gpu_uuid') ?? '',
			usedBytes: smiBytes(row.get('used_memory') ?? row.get('used_gpu_memory')),
		});
		holder.driverName = row.get('process_name') ?? '';
	}
	return [...byPid]
		.map(([pid, {memory, devices, driverName}]) => ({
			pid,
			startTicks: ticks.get(pid) ?? null,
			memory,
			devices: [...new Set(devices)].sort(),
			driverName,
		}))
		.sort((a, b) => a.pid - b.pid);
}

function driverListOf(
	status: number,
	rows: number,
	panel: string,
	last: HolderFacts | null,
): HolderFacts['driverList'] {
	if (status !== 0) return 'no answer';
	if (rows > 0) return 'listed';
	const seen = readPanel(panel);
	if (seen) return seen;
	/** The panel is looked at with each sweep only: between them the last word on an empty list stands. */
	return last?.driverList === 'unresolvable' ? 'unresolvable' : 'none';
}

/** The process panel of the plain tool: "No running processes found" and an empty panel are different answers. */
export function readPanel(panel: string): 'none' | 'unresolvable' | null {
	if (!panel.includes('Processes:')) return null;
	return /No running processes found/i.test(panel) ? 'none' : 'unresolvable';
}
