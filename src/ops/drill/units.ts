import {randomUUID} from 'node:crypto';
import {existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {constants} from 'node:os';
import type {Census, Inhabitant} from './census.ts';
import {boxIdentity, signalBoxProcess} from './leash.ts';
import type {BoxPaths} from './paths.ts';
import type {Population, Resident} from './population.ts';
import {CLEAN_SIGNALS, Unit, type UnitDefinition} from './unit.ts';
import {MANAGER_TEXT, MISSING_TEXT, showText, targetText, timerText} from './unit-text.ts';

/**
 * The box's service manager: starts units, follows their processes, stops them by cgroup, starts them again as their
 * restart rule says, and keeps what `systemctl` shows in files.
 */
export class Units {
	readonly all = new Map<string, Unit>();
	private inhabitants: readonly Inhabitant[] = [];
	private jobs = 1200;
	private closed = false;
	private readonly written = new Map<string, string>();
	private readonly settled = new Map<Unit, Set<() => void>>();

	constructor(
		private readonly paths: BoxPaths,
		private readonly population: Population,
		private readonly census: Census,
	) {
		mkdirSync(`${paths.manager}/show`, {recursive: true});
		this.write('missing', MISSING_TEXT);
		this.write('show/-manager', MANAGER_TEXT);
		population.whenOneEnds(resident => this.ended(resident));
	}

	/** Makes a unit known, as after a daemon-reload. */
	load(definition: UnitDefinition): Unit {
		const unit = new Unit(definition);
		this.all.set(unit.name, unit);
		this.readFiles();
		unit.loadedDropIns = unit.dropIns;
		return unit;
	}

	/** Starts it now. Why it did not start, in words, or null. */
	start(unit: Unit): string | null {
		if (unit.running && unit.sub !== 'auto-restart') return null;
		if (unit.loadedDropIns.some(blocks)) {
			this.settle(unit, 'success', 0, 0);
			return null;
		}
		unit.invocation = randomUUID();
		this.census.invocations.set(unit.invocation.replaceAll('-', ''), unit.cgroup);
		unit.restartAt = null;
		try {
			unit.residents = unit.definition.launch(unit);
		} catch (error) {
			this.settle(unit, 'exit-code', 1, 203);
			return error instanceof Error ? error.message : String(error);
		}
		unit.active = 'active';
		unit.sub = 'running';
		unit.result = 'success';
		unit.activeSince = Date.now();
		unit.mainPid = unit.residents[0]?.pid ?? 0;
		this.render();
		return null;
	}

	/** Begins a stop; resolves when nothing of the unit is left. */
	stop(unit: Unit, byRequest: boolean): Promise<void> {
		if (!unit.running) return Promise.resolve();
		const done = new Promise<void>(resolve => {
			this.settled.set(unit, (this.settled.get(unit) ?? new Set()).add(resolve));
		});
		if (unit.sub === 'auto-restart') {
			this.settle(unit, unit.result, unit.exitCode, unit.exitStatus);
			return done;
		}
		if (unit.stopping) {
			if (byRequest) unit.stopping = {...unit.stopping, byRequest};
			return done;
		}
		unit.active = 'deactivating';
		unit.sub = 'stop-sigterm';
		unit.stopping = {byRequest, killAt: Date.now() + unit.definition.stopLimitMs, killed: false};
		if (byRequest) unit.job = {id: this.jobs++, type: 'stop'};
		this.signal(unit, 'SIGTERM', byRequest ? 'request' : 'manager');
		this.render();
		return done;
	}

	/** To every process of its cgroup, or to the main one alone. */
	signal(unit: Unit, signal: NodeJS.Signals, by: 'manager' | 'request', mainOnly = false): void {
		for (const {pid, startTicks} of this.members(unit)) {
			if (mainOnly && pid !== unit.mainPid) continue;
			const resident = this.population.find(pid, startTicks);
			if (resident) resident.endedBy ??= by;
			signalBoxProcess(this.paths.leash, pid, startTicks, signal);
		}
	}

	private members(unit: Unit): {pid: number; startTicks: number}[] {
		const seen = new Map<number, {pid: number; startTicks: number}>();
		for (const one of this.inhabitants) if (one.cgroup === unit.cgroup) seen.set(one.pid, one);
		for (const one of unit.residents) if (!one.ended) seen.set(one.pid, one);
		return [...seen.values()].filter(
			({pid, startTicks}) => boxIdentity(pid, this.paths.leash)?.startTicks === startTicks,
		);
	}

	/** Called with every census: follows stops to their end and starts again what is due. */
	tick(inhabitants: readonly Inhabitant[], nowMs: number): void {
		this.inhabitants = inhabitants;
		for (const unit of [...this.all.values()]) {
			if (unit.stopping) this.followStop(unit, nowMs);
			else if (unit.restartAt !== null && nowMs >= unit.restartAt) {
				unit.restarts++;
				this.start(unit);
			} else if (unit.timer && nowMs >= unit.timer.dueAt) {
				unit.timer.dueAt = nowMs + unit.timer.everyMs;
				this.start(unit);
			}
		}
		this.readFiles();
		this.render();
	}

	private followStop(unit: Unit, nowMs: number): void {
		const stopping = unit.stopping;
		if (!stopping) return;
		if (this.members(unit).length > 0) {
			if (nowMs < stopping.killAt || stopping.killed) return;
			stopping.killed = true;
			unit.sub = 'stop-sigkill';
			unit.result = 'timeout';
			this.signal(unit, 'SIGKILL', 'manager');
			return;
		}
		const restart =
			!stopping.byRequest &&
			(unit.definition.restart === 'always' || (unit.definition.restart === 'on-failure' && unit.result !== 'success'));
		if (restart) {
			unit.stopping = null;
			unit.active = 'activating';
			unit.sub = 'auto-restart';
			unit.mainPid = 0;
			unit.residents = [];
			unit.restartAt = nowMs + unit.definition.restartMs;
			return;
		}
		this.settle(unit, unit.result, unit.exitCode, unit.exitStatus);
	}

	private settle(unit: Unit, result: string, code: number, status: number): void {
		unit.active = result === 'success' ? 'inactive' : 'failed';
		unit.sub = result === 'success' ? 'dead' : 'failed';
		Object.assign(unit, {
			result,
			exitCode: code,
			exitStatus: status,
			mainPid: 0,
			stopping: null,
			job: null,
			restartAt: null,
		});
		const transient = unit.definition.fragment === null;
		if (transient && (result === 'success' || unit.definition.collect)) this.forget(unit);
		this.render();
		for (const resolve of this.settled.get(unit) ?? []) resolve();
		this.settled.delete(unit);
	}

	forget(unit: Unit): void {
		this.all.delete(unit.name);
		this.written.delete(`show/${unit.name}`);
		rmSync(`${this.paths.manager}/show/${unit.name}`, {force: true});
	}

	private ended(resident: Resident): void {
		const unit = [...this.all.values()].find(one => one.residents.includes(resident));
		if (this.closed || !unit?.running) return;
		const main = unit.residents[0] === resident;
		if (!main && (!unit.definition.fatalChildren || unit.stopping)) return;
		const {code, signal} = resident.ended ?? {code: 0, signal: null};
		if (main) {
			unit.mainPid = 0;
			unit.exitCode = signal ? 2 : 1;
			unit.exitStatus = signal ? constants.signals[signal] : (code ?? 0);
			const clean = code === 0 || CLEAN_SIGNALS.includes(signal);
			if (!clean && unit.result !== 'timeout') unit.result = signal ? 'signal' : 'exit-code';
		} else {
			Object.assign(unit, {exitCode: 1, exitStatus: 1, result: 'exit-code'});
		}
		void this.stop(unit, false);
		this.followStop(unit, Date.now());
	}

	/** What the unit files say now: links that want it at boot, and drop-ins, which count after a reload. */
	private readFiles(): void {
		const vendor = wantsDirectories(this.paths.vendorUnits);
		for (const unit of this.all.values()) {
			const {name, wantedBy, fragment} = unit.definition;
			unit.enabled = wantedBy !== null && existsSync(`${this.paths.unitFiles}/${wantedBy}.wants/${name}`);
			unit.vendorWantedBy =
				fragment === null
					? []
					: vendor
							.filter(directory => existsSync(`${this.paths.vendorUnits}/${directory}/${name}`))
							.map(directory => directory.slice(0, -'.wants'.length));
			unit.dropIns = fragment === null ? [] : confFiles(`${this.paths.unitFiles}/${name}.d`);
		}
	}

	/** What a boot would start now, or a timer after it: the units that a person would find running again. */
	atBoot(): string[] {
		this.readFiles();
		return [...this.all.values()]
			.filter(unit => unit.wantedBy.length > 0 || unit.timer !== null)
			.filter(unit => !unit.dropIns.some(blocks))
			.map(unit => unit.name);
	}

	/** From here on it follows nothing and writes nothing: the box is being taken away. */
	close(): void {
		this.closed = true;
	}

	reload(): void {
		this.readFiles();
		for (const unit of this.all.values()) unit.loadedDropIns = unit.dropIns;
		this.render();
	}

	render(): void {
		const units = [...this.all.values()];
		for (const unit of units) this.write(`show/${unit.name}`, showText(unit));
		for (const target of new Set(['multi-user.target', ...units.flatMap(unit => unit.wantedBy)])) {
			const wanted = units.filter(unit => unit.wantedBy.includes(target)).map(unit => unit.name);
			this.write(`show/${target}`, targetText(target, TARGETS[target] ?? target, wanted));
		}
		for (const {name, timer} of units) if (timer) this.write(`show/${timer.name}`, timerText(timer.name, name));
		this.write(
			'units.tsv',
			`${[
				...units.map(unit => [unit.name, 'loaded', unit.active, unit.sub, unit.definition.description].join('\t')),
				'multi-user.target\tloaded\tactive\tactive\tMulti-User System',
			].join('\n')}\n`,
		);
		this.write('files.tsv', units.map(unit => `${unit.name}\t${unit.fileState}\tenabled\n`).join(''));
	}

	private write(name: string, text: string): void {
		if (this.written.get(name) === text) return;
		this.written.set(name, text);
		const path = `${this.paths.manager}/${name}`;
		writeFileSync(`${this.paths.manager}/.new`, text);
		renameSync(`${this.paths.manager}/.new`, path);
	}
}

const TARGETS: Readonly<Record<string, string>> = {
	'multi-user.target': 'Multi-User System',
	'graphical.target': 'Graphical Interface',
};

function wantsDirectories(directory: string): string[] {
	try {
		return readdirSync(directory).filter(name => name.endsWith('.wants'));
	} catch {
		return [];
	}
}

function confFiles(directory: string): string[] {
	try {
		return readdirSync(directory)
			.filter(name => name.endsWith('.conf'))
			.sort()
			.map(name => `${directory}/${name}`);
	} catch {
		return [];
	}
}

/** A drop-in whose condition does not hold: the start is skipped, and that counts as success. */
function blocks(dropIn: string): boolean {
	try {
		const conditions = readFileSync(dropIn, 'utf8').matchAll(/^ConditionPathExists=(!?)(.+)$/gm);
		return [...conditions].some(([, not, path = '']) => existsSync(path) === (not === '!'));
	} catch {
		return false;
	}
}
