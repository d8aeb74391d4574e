/** Units that matter here: those that own GPU holders, those configured as unwanted, those that name the model or GPUs. */
export type ServiceFacts = {
	/** `absent`: pid 1 is not systemd or there is no systemctl. `silent`: no bus. Then `units` is what unit files tell. */
	readonly manager: 'systemd' | 'absent' | 'silent';
	readonly units: readonly Service[];
};

export type Service = {
	readonly unit: string;
	readonly loadState: string;
	readonly activeState: string;
	readonly subState: string;
	readonly result: string;
	readonly mainPid: number;
	readonly controlGroup: string;
	readonly unitFileState: string;
	readonly preset: string;
	readonly fragmentPath: string;
	readonly dropInPaths: readonly string[];
	readonly wantedBy: readonly string[];
	readonly requiredBy: readonly string[];
	readonly triggeredBy: readonly string[];
	readonly restart: string;
	readonly restarts: number;
	/** ms; null is "infinity" or not told. */
	readonly stopLimitMs: number | null;
	readonly job: string;
	readonly needsReload: boolean;
	readonly execStart: string;
	readonly description: string;
	/** Pids in the unit's cgroup now. */
	readonly pids: readonly number[];
	readonly unwanted: boolean;
};

/** Does it run now, in one word for people and one for decisions. */
export type RunState = 'running' | 'starting' | 'will start again' | 'stopping' | 'stopped' | 'stopped by force' | 'stuck' | 'unknown';

/** Does it come back at the next boot, and why. */
export type BootVerdict =
	| {readonly comesBack: 'yes'; readonly because: readonly string[]}
	| {readonly comesBack: 'no'; readonly notes: readonly string[]}
	| {readonly comesBack: 'unknown'; readonly because: string};
