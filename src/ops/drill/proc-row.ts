import {readFileSync} from 'node:fs';
import type {Inhabitant} from './census.ts';
import {fieldsAfterName} from './leash.ts';

const PAGE_BYTES = 4096;

/** The files of one process in the box's /proc: true pid and start ticks, the rest as its disguise wants. */
export type ProcRow = Readonly<Record<'stat' | 'status' | 'cgroup' | 'wchan' | 'cmdline' | 'comm', string>>;

export function procRow(one: Inhabitant, parentInBox: boolean): ProcRow {
	const {disguise, pid} = one;
	const name = (disguise.name ?? trueName(one.stat)).slice(0, 15);
	const parentPid = disguise.parentPid ?? (parentInBox ? one.parentPid : 1);
	const fields = fieldsAfterName(one.stat);
	if (disguise.state !== undefined) fields[0] = disguise.state;
	fields[1] = String(parentPid);
	if (disguise.residentBytes !== undefined) fields[21] = String(Math.round(disguise.residentBytes / PAGE_BYTES));
	return {
		stat: `${pid} (${name}) ${fields.join(' ')}\n`,
		status: statusOf(pid, name, parentPid, disguise.residentBytes),
		cgroup: `0::${one.cgroup}\n`,
		wchan: disguise.waitChannel ?? read(`/proc/${pid}/wchan`) ?? '0',
		cmdline: disguise.commandLine ? `${disguise.commandLine.join('\0')}\0` : (read(`/proc/${pid}/cmdline`) ?? ''),
		comm: `${name}\n`,
	};
}

const trueName = (stat: string): string => stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));

function statusOf(pid: number, name: string, parentPid: number, residentBytes: number | undefined): string {
	return (read(`/proc/${pid}/status`) ?? '')
		.replace(/^Name:.*$/m, `Name:\t${name}`)
		.replace(/^PPid:.*$/m, `PPid:\t${parentPid}`)
		.replace(/^TracerPid:.*$/m, 'TracerPid:\t0')
		.replace(/^VmRSS:.*$/m, line =>
			residentBytes === undefined ? line : `VmRSS:\t${String(Math.round(residentBytes / 1024)).padStart(8)} kB`,
		);
}

function read(path: string): string | null {
	try {
		return readFileSync(path, 'latin1');
	} catch {
		return null;
	}
}

/** Pid 1 of the box: a row to look at, with no process behind it that could be signalled. */
export const INIT_ROW: ProcRow = {
	stat: '1 (systemd) S 0 1 1 0 -1 4194560 62511 1288470 103 942 312 905 2205 1193 20 0 1 0 7 173539328 3201 18446744073709551615 1 1 0 0 0 0 671173123 4096 1260 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n',
	status:
		'Name:\tsystemd\nUmask:\t0000\nState:\tS (sleeping)\nTgid:\t1\nNgid:\t0\nPid:\t1\nPPid:\t0\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t1\nVmRSS:\t   12804 kB\nThreads:\t1\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n',
	cgroup: '0::/init.scope\n',
	wchan: 'do_epoll_wait',
	cmdline: '/sbin/init\0',
	comm: 'systemd\n',
};
