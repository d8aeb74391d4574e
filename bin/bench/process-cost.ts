import {readdirSync, readFileSync} from 'node:fs';

const TICKS_PER_SECOND = 100;

export type Cost = {readonly ownTicks: number; readonly familyTicks: number; readonly residentBytes: number};

/** CPU of a process and of everything below it, ended children included; memory of the process alone. */
export function costOf(pid: number): Cost {
	const rows = new Map<number, {parent: number; own: number; reaped: number}>();
	for (const name of readdirSync('/proc')) {
		if (!/^\d+$/.test(name)) continue;
		const row = statOf(Number(name));
		if (row) rows.set(Number(name), row);
	}
	const own = rows.get(pid);
	let familyTicks = 0;
	const wanted = [pid];
	for (let at = 0; at < wanted.length; at++) {
		const row = rows.get(wanted[at] ?? 0);
		if (row) familyTicks += row.own + row.reaped;
		for (const [child, {parent}] of rows) if (parent === wanted[at]) wanted.push(child);
	}
	return {ownTicks: own?.own ?? 0, familyTicks, residentBytes: residentOf(pid)};
}

export const percent = (ticks: number, seconds: number): number => (ticks / TICKS_PER_SECOND / seconds) * 100;

function statOf(pid: number): {parent: number; own: number; reaped: number} | null {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
		const fields = stat
			.slice(stat.lastIndexOf(')') + 2)
			.split(' ')
			.map(Number);
		const at = (index: number) => fields[index] ?? 0;
		return {parent: at(1), own: at(11) + at(12), reaped: at(13) + at(14)};
	} catch {
		return null;
	}
}

function residentOf(pid: number): number {
	try {
		return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
	} catch {
		return 0;
	}
}
