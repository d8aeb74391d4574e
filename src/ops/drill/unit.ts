import type {Resident} from './population.ts';

/** What a unit file says, as far as this manager understands it. */
export type UnitDefinition = {
	readonly name: string;
	readonly description: string;
	/** null: transient, made by systemd-run. */
	readonly fragment: string | null;
	readonly wantedBy: string | null;
	readonly restart: 'no' | 'on-failure' | 'always';
	readonly restartMs: number;
	readonly stopLimitMs: number;
	readonly execStart: readonly string[];
	/** A failed transient unit goes away by itself. */
	readonly collect: boolean;
	/** The end of any of its processes ends the service with status 1, as when a worker of a model server dies. */
	readonly fatalChildren: boolean;
	/** Starts its processes, the main one first. Throws when the program cannot be started. */
	launch(unit: Unit): Resident[];
};

export type ActiveState = 'inactive' | 'active' | 'activating' | 'deactivating' | 'failed';

/** One unit as the manager has it loaded. */
export class Unit {
	active: ActiveState = 'inactive';
	sub = 'dead';
	result = 'success';
	mainPid = 0;
	restarts = 0;
	job: {readonly id: number; readonly type: 'stop' | 'start'} | null = null;
	/** 1 exited, 2 killed; then status is a code or a signal number. */
	exitCode = 0;
	exitStatus = 0;
	activeSince: number | null = null;
	/** Residents of the present run; the rest of the cgroup is found by census. */
	residents: Resident[] = [];
	/** Set while it is being stopped: by request it does not come back. */
	stopping: {readonly byRequest: boolean; readonly killAt: number; killed: boolean} | null = null;
	restartAt: number | null = null;
	invocation = '';
	dropIns: readonly string[] = [];
	loadedDropIns: readonly string[] = [];
	enabled = false;
	/** Targets with a link to it where packages put theirs: `disable` leaves those alone. */
	vendorWantedBy: readonly string[] = [];
	/** A timer that starts it again and again, whatever anybody enabled. */
	timer: {readonly name: string; readonly everyMs: number; dueAt: number} | null = null;
	masked = false;

	constructor(readonly definition: UnitDefinition) {}

	get name(): string {
		return this.definition.name;
	}

	get cgroup(): string {
		return `/system.slice/${this.definition.name}`;
	}

	get running(): boolean {
		return this.active === 'active' || this.active === 'activating' || this.active === 'deactivating';
	}

	/** Targets that want it at boot. */
	get wantedBy(): readonly string[] {
		const {wantedBy} = this.definition;
		return [...new Set([...this.vendorWantedBy, ...(this.enabled && wantedBy !== null ? [wantedBy] : [])])];
	}

	get fileState(): string {
		if (this.definition.fragment === null) return 'transient';
		return this.enabled ? 'enabled' : this.definition.wantedBy === null ? 'static' : 'disabled';
	}
}

/** Signals after which `on-failure` does not start a service again. */
export const CLEAN_SIGNALS: readonly (NodeJS.Signals | null)[] = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGPIPE'];
