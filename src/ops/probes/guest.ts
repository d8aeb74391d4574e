import {quote, show} from '../command.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import type {Target} from '../target.ts';
import {type Guest, guestIn} from '../transports/prefix.ts';
import type {Answer, Probe} from './probe.ts';

/** The guest as its hypervisor sees it, asked only while the direct route is silent. */
export type GuestFacts = {
	readonly status: 'running' | 'stopped' | 'unknown';
	readonly lock: string | null;
	readonly frozen: boolean | null;
	readonly storage: string | null;
	/** Which of them is silent: the words for "unreachable". */
	readonly verdict: string;
};

const SECTIONS = ['status', 'lock', 'frozen', 'storage'] as const;

/**
 * Runs on the hypervisor (the route without its `through`). Each tool behind its own limit: the configuration file system of
 * a cluster without quorum hangs. Source: Proxmox VE `pct`, cgroup v1 and v2 freezers, `ceph health`.
 */
export const guest: Probe<GuestFacts> = {
	id: 'guest',
	lane: 'services',
	everyMs: 10_000,
	limitMs: 22_000,
	capBytes: 65_536,
	script: ({target}) => {
		const asked = guestOf(target);
		if (asked === null) return null;
		const name = quote(asked.id);
		const pct = show(asked.pct);
		return [
			DEFINE_MARK,
			`${mark('status')}; timeout -k 1 5 ${pct} status ${name} 2>&1; echo "$?"`,
			`${mark('lock')}; timeout -k 1 5 ${pct} config ${name} 2>/dev/null | grep '^lock:'`,
			`${mark('frozen')}; cat "$SYS/fs/cgroup/lxc/"${name}/cgroup.events "$SYS/fs/cgroup/lxc.payload."${name}/cgroup.events "$SYS/fs/cgroup/freezer/lxc/"${name}/freezer.state "$SYS/fs/cgroup/freezer/lxc.payload."${name}/freezer.state 2>/dev/null`,
			`${mark('storage')}; command -v ceph >/dev/null 2>&1 && timeout -k 1 5 ceph health 2>/dev/null; true`,
		].join('\n');
	},
	parse: parseGuest,
};

/** Of the first route that leads into a guest. */
export const guestOf = (target: Pick<Target, 'routes'>): Guest | null =>
	target.routes.map(({through}) => guestIn(through ?? [])).find(guest => guest !== null) ?? null;

function parseGuest(answer: Answer): GuestFacts {
	const sections = readSections('pct', answer.stdout, SECTIONS);
	const lines = sections.status.trim().split('\n');
	const code = Number(lines.pop());
	const word = /^status: (\w+)/m.exec(lines.join('\n'))?.[1];
	const status = word === 'running' || word === 'stopped' ? word : 'unknown';
	const lock = /^lock: *(\S+)/m.exec(sections.lock)?.[1] ?? null;
	const frozen = frozenFrom(sections.frozen);
	const storage = sections.storage.trim().split('\n')[0] || null;
	return {status, lock, frozen, storage, verdict: verdictOf({status, lock, frozen, storage}, code, lines.at(-1) ?? '')};
}

/** `frozen 1` (v2) or `FROZEN`, `FREEZING`, `THAWED` (v1); null when neither file could be read. */
function frozenFrom(text: string): boolean | null {
	const v2 = /^frozen (\d)$/m.exec(text)?.[1];
	const v1 = /^(FROZEN|FREEZING|THAWED)$/m.exec(text)?.[1];
	if (v2 === undefined && v1 === undefined) return null;
	return v2 === '1' || v1 === 'FROZEN' || v1 === 'FREEZING';
}

function verdictOf(facts: Omit<GuestFacts, 'verdict'>, code: number, said: string): string {
	const {status, lock, frozen, storage} = facts;
	const because = storage && !/^HEALTH_OK/.test(storage) ? `; storage says ${storage}` : '';
	if (code === 124 || code === 137) return `the hypervisor does not answer about its guest${because}`;
	if (code === 127) return 'the outer route is no hypervisor: no `pct` there';
	if (status === 'stopped') return `the guest is stopped${lock ? ` and locked (${lock})` : ''}${because}`;
	if (status === 'unknown') return `the hypervisor cannot tell: ${said || `exit ${code}`}${because}`;
	if (frozen) return `the guest is frozen${lock ? ` and locked (${lock})` : ''}${because}`;
	if (lock) return `the guest runs and is locked (${lock}): network or sshd of the guest is silent${because}`;
	return `the guest runs: its network or sshd is silent${because}`;
}
