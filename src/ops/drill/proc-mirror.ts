import {mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import type {Inhabitant} from './census.ts';
import type {BoxPaths} from './paths.ts';
import {INIT_ROW, type ProcRow, procRow} from './proc-row.ts';

type Shown = Pick<Inhabitant, 'startTicks' | 'stat' | 'disguise'> & {
	readonly parentInBox: boolean;
	readonly row: ProcRow;
	readonly devices: string;
};

/**
 * The box's /proc: one directory per inhabitant, written so that a reader never sees half a file, taken away when the
 * process is gone. Only what changed is written again.
 */
export class ProcMirror {
	private shown = new Map<number, Shown>();
	private readonly members = new Map<string, string>();
	private serial = 0;

	constructor(private readonly paths: BoxPaths) {
		this.enter(1, INIT_ROW, []);
	}

	show(inhabitants: readonly Inhabitant[]): void {
		const present = new Map(inhabitants.map(one => [one.pid, one]));
		for (const [pid, before] of this.shown) {
			if (present.get(pid)?.startTicks !== before.startTicks) this.leave(pid);
		}
		for (const one of inhabitants) this.update(one, present.has(one.parentPid));
		this.showGroups(inhabitants);
		this.file('uptime', readFileSync('/proc/uptime', 'latin1'));
	}

	private update(one: Inhabitant, parentInBox: boolean): void {
		const before = this.shown.get(one.pid);
		// A sleeping process reads the same byte for byte: then nothing else of it is looked at.
		if (before && before.stat === one.stat && before.disguise === one.disguise && before.parentInBox === parentInBox)
			return;
		const links = one.disguise.devices ?? [];
		const devices = links.join(' ');
		const row = procRow(one, parentInBox);
		if (before?.devices === devices) {
			for (const [name, text] of Object.entries(row)) {
				if (before.row[name as keyof ProcRow] !== text) this.file(`${one.pid}/${name}`, text);
			}
		} else {
			if (before) this.leave(one.pid);
			this.enter(one.pid, row, links);
		}
		const {startTicks, stat, disguise} = one;
		this.shown.set(one.pid, {startTicks, stat, disguise, parentInBox, row, devices});
	}

	private enter(pid: number, row: ProcRow, links: readonly string[]): void {
		const made = `${this.paths.proc}/.new-${pid}`;
		rmSync(made, {recursive: true, force: true});
		mkdirSync(`${made}/fd`, {recursive: true});
		for (const [name, text] of Object.entries(row)) writeFileSync(`${made}/${name}`, text, 'latin1');
		for (const [at, device] of links.entries()) symlinkSync(`${this.paths.dev}/${device}`, `${made}/fd/${at + 7}`);
		renameSync(made, `${this.paths.proc}/${pid}`);
	}

	private leave(pid: number): void {
		this.shown.delete(pid);
		const old = `${this.paths.proc}/.old-${this.serial++}`;
		renameSync(`${this.paths.proc}/${pid}`, old);
		rmSync(old, {recursive: true, force: true});
	}

	private file(name: string, text: string): void {
		const made = `${this.paths.proc}/.file-${this.serial++}`;
		writeFileSync(made, text, 'latin1');
		renameSync(made, `${this.paths.proc}/${name}`);
	}

	/** cgroup.procs of every group that has, or had, members. */
	private showGroups(inhabitants: readonly Inhabitant[]): void {
		const now = new Map<string, number[]>();
		for (const one of inhabitants) now.set(one.cgroup, [...(now.get(one.cgroup) ?? []), one.pid]);
		for (const group of new Set([...now.keys(), ...this.members.keys()])) {
			const text = (now.get(group) ?? []).map(pid => `${pid}\n`).join('');
			if (this.members.get(group) === text) continue;
			this.members.set(group, text);
			const directory = `${this.paths.cgroups}${group}`;
			mkdirSync(directory, {recursive: true});
			writeFileSync(`${directory}/.procs`, text);
			renameSync(`${directory}/.procs`, `${directory}/cgroup.procs`);
			const events = `populated ${text ? 1 : 0}\nfrozen 0\n`;
			writeFileSync(`${directory}/cgroup.events`, events);
		}
	}
}
