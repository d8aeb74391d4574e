import {readdirSync, readFileSync, readlinkSync} from 'node:fs';
import {fieldsAfterName, startTicksOf} from './leash.ts';
import type {BoxPaths} from './paths.ts';
import type {Disguise, Population} from './population.ts';

/** One living process of the box: the truth about it, and what it is to look like. */
export type Inhabitant = {
	readonly pid: number;
	readonly startTicks: number;
	/** The kernel's own record, latin1 so that every byte of the name survives. */
	readonly stat: string;
	readonly parentPid: number;
	readonly disguise: Disguise;
	readonly cgroup: string;
};

/**
 * Who lives in the box: every process whose descriptor 3 is the leash, and nobody else. Names and cgroups are decided once
 * for each process, while its parent can still be seen.
 */
export class Census {
	private known = new Map<string, {disguise: Disguise; cgroup: string}>();
	private turn = 0;
	/** Cgroup by the INVOCATION_ID that the manager gives to what it starts. */
	readonly invocations = new Map<string, string>();

	constructor(
		private readonly paths: BoxPaths,
		private readonly population: Population,
		private readonly program: readonly string[],
	) {}

	take(): Inhabitant[] {
		this.turn++;
		const found: {pid: number; stat: string}[] = [];
		for (const name of readdirSync('/proc')) {
			const pid = Number(name);
			if (!Number.isInteger(pid) || pid === process.pid) continue;
			try {
				if (readlinkSync(`/proc/${pid}/fd/3`) !== this.paths.leash) continue;
				found.push({pid, stat: readFileSync(`/proc/${pid}/stat`, 'latin1')});
			} catch {
				// Not ours to read, or gone since the listing.
			}
		}
		const inhabitants = new Map<number, Inhabitant>();
		const known = new Map<string, {disguise: Disguise; cgroup: string}>();
		// Parents first, so that a child finds the cgroup it inherits.
		for (const {pid, stat} of found.sort((a, b) => startTicksOf(a.stat) - startTicksOf(b.stat) || a.pid - b.pid)) {
			const startTicks = startTicksOf(stat);
			const parentPid = Number(fieldsAfterName(stat)[1]);
			const key = `${pid}@${startTicks}`;
			const before = this.known.get(key);
			// A program replaces itself (sh, then node) right after its start: look at the newcomers a few times.
			const settled =
				before && this.turn % 5 !== 0 ? before : this.introduce(pid, startTicks, inhabitants.get(parentPid), before);
			known.set(key, settled);
			inhabitants.set(pid, {pid, startTicks, stat, parentPid, ...settled});
		}
		this.known = known;
		return [...inhabitants.values()];
	}

	private introduce(
		pid: number,
		startTicks: number,
		parent: Inhabitant | undefined,
		before: {disguise: Disguise; cgroup: string} | undefined,
	): {disguise: Disguise; cgroup: string} {
		const resident = this.population.find(pid, startTicks);
		const announced = this.announced(pid, startTicks);
		const disguise = {...this.interpreter(pid), ...resident?.disguise, ...announced};
		const cgroup = disguise.cgroup ?? before?.cgroup ?? this.invoked(pid) ?? parent?.cgroup ?? '/.lxc';
		return {disguise, cgroup};
	}

	/** What a stand-in says about a process it started, in a file named by the pid. */
	private announced(pid: number, startTicks: number): Disguise {
		try {
			const said = JSON.parse(readFileSync(`${this.paths.disguises}/${pid}`, 'utf8'));
			return said.startTicks === startTicks ? said.disguise : {};
		} catch {
			return {};
		}
	}

	/** The bundle that plays python is shown as the python it plays. */
	private interpreter(pid: number): Disguise {
		try {
			const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
			const own = [...this.program, 'drill-part', 'python'];
			if (!own.every((word, at) => line[at] === word)) return {};
			return {name: 'python3', commandLine: [this.paths.python, ...line.slice(own.length)]};
		} catch {
			return {};
		}
	}

	private invoked(pid: number): string | undefined {
		if (this.invocations.size === 0) return undefined;
		try {
			const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
			const id = variables.find(variable => variable.startsWith('INVOCATION_ID='))?.slice('INVOCATION_ID='.length);
			return id === undefined ? undefined : this.invocations.get(id);
		} catch {
			return undefined;
		}
	}
}
