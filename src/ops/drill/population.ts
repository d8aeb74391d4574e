import {type ChildProcess, type StdioOptions, spawn} from 'node:child_process';
import {boxIdentity, type Leash} from './leash.ts';

/** What a box process is to look like; what is left out is shown as it truly is. */
export type Disguise = {
	readonly name?: string;
	readonly commandLine?: readonly string[];
	/** Path in the cgroup tree, `/system.slice/x.service`. */
	readonly cgroup?: string;
	readonly parentPid?: number;
	readonly residentBytes?: number;
	/** Links below /dev that it holds open, `nvidia0`. */
	readonly devices?: readonly string[];
	readonly gpu?: {readonly index: number; readonly memoryMib: number};
	readonly waitChannel?: string;
	readonly state?: string;
};

/** A process that the drill itself started in the box, for as long as the box remembers. */
export type Resident = {
	readonly pid: number;
	readonly startTicks: number;
	readonly unit: string | null;
	readonly protected: boolean;
	readonly disguise: Disguise;
	readonly child: ChildProcess;
	ended: {readonly code: number | null; readonly signal: NodeJS.Signals | null} | null;
	/** The manager's doing: its end by a signal is nobody's fault. `null`: a signal from elsewhere. */
	endedBy: 'manager' | 'request' | 'drill' | null;
};

export type SpawnRequest = {
	readonly file: string;
	readonly args: readonly string[];
	readonly argv0?: string;
	readonly env?: Readonly<Record<string, string>>;
	readonly cwd?: string;
	readonly stdio?: readonly ['pipe' | 'ignore' | number, 'pipe' | 'ignore' | number, 'pipe' | 'ignore' | number];
	readonly unit?: string | null;
	readonly protected?: boolean;
	readonly disguise: Disguise;
};

/** All residents, living and ended. */
export class Population {
	readonly residents: Resident[] = [];
	private readonly onEnd = new Set<(resident: Resident) => void>();

	constructor(
		private readonly leash: Leash,
		private readonly path: string,
		private readonly home: string,
	) {}

	/** Starts a program in the box, in a session of its own. Throws when it cannot be started. */
	spawn(request: SpawnRequest): Resident {
		const stdio: StdioOptions = [...(request.stdio ?? [this.leash.readEnd, 'ignore', 'ignore']), this.leash.readEnd];
		const child = spawn(request.file, request.args, {
			detached: true,
			cwd: request.cwd ?? '/',
			env: {PATH: this.path, HOME: this.home, LANG: 'C', ...request.env},
			stdio,
			...(request.argv0 === undefined ? {} : {argv0: request.argv0}),
		});
		child.on('error', () => {});
		const pid = child.pid;
		const identity = pid === undefined ? null : (boxIdentity(pid, this.leash.path) ?? {pid, startTicks: 0});
		if (!identity) throw new Error(`cannot start ${request.file}`);
		const resident: Resident = {
			...identity,
			unit: request.unit ?? null,
			protected: request.protected ?? false,
			disguise: request.disguise,
			child,
			ended: null,
			endedBy: null,
		};
		this.residents.push(resident);
		child.on('exit', (code, signal) => {
			resident.ended = {code, signal};
			for (const listener of this.onEnd) listener(resident);
		});
		child.unref();
		return resident;
	}

	whenOneEnds(listener: (resident: Resident) => void): void {
		this.onEnd.add(listener);
	}

	living(): Resident[] {
		return this.residents.filter(resident => resident.ended === null);
	}

	find(pid: number, startTicks: number): Resident | undefined {
		return this.residents.find(resident => resident.pid === pid && resident.startTicks === startTicks);
	}

	end(): void {
		for (const resident of this.living()) {
			resident.endedBy ??= 'drill';
			resident.child.kill('SIGKILL');
		}
	}
}
