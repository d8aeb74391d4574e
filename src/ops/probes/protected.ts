import type {Identity} from './probe.ts';
import {processOf} from './process-table.ts';
import type {Owner, Process, ProcessFacts} from './processes.ts';

/** Names as the kernel keeps them are cut to 15 bytes: rules match the cut form, by prefix where the tail varies. */
const BY_NAME: readonly (readonly [name: RegExp, why: string])[] = [
	[/^nvidia-persist/, 'persistence daemon: without it every query initialises the cards'],
	[/^nv-fabricmanag/, 'fabric manager: CUDA stops working on NVSwitch boxes without it'],
	[/^nvidia-imex/, 'IMEX daemon of the driver'],
	[/^(nv-hostengine|dcgm-exporter|dcgmi|dcgm$)/, 'GPU monitoring (DCGM)'],
	[/^nvidia-cuda-mps/, 'MPS: end it with `echo quit | nvidia-cuda-mps-control`'],
	[/^nvidia-powerd/, 'power daemon of the driver'],
	[/^nvidia-(contain|device-p|smi$)/, 'tool of the driver or the container toolkit'],
	[/^(Xorg|Xwayland|X|gnome-shell|gdm|gdm-|gdm3|sddm|lightdm|kwin_)/, 'display server'],
	[/^(nvtop|nvitop|btop|htop|gpustat)/, "somebody's monitor, harmless"],
	[/^(qemu-|kvm$)/, 'virtual machine: it may hold the GPU by pass-through'],
	[/^(containerd|dockerd|docker-|crio$|podman$|conmon$|kubelet$|runc|crun$)/, 'container runtime'],
	[/^(lxc-|lxcfs|\[lxc monitor)/, 'container monitor of the host'],
	[/^sshd/, 'SSH server: the way to this host'],
	[/^(systemd|init|systemd-journal|systemd-udevd|systemd-logind|dbus-daemon)$/, 'system manager'],
];

const BY_UNIT: readonly (readonly [unit: RegExp, why: string])[] = [
	[/^nvidia-(persistenced|fabricmanager|imex|powerd|mps)/, 'infrastructure of the driver'],
	[/^(dcgm|dcgm-exporter|nvidia-dcgm)\b/, 'GPU monitoring (DCGM)'],
	[/^(display-manager|gdm|gdm3|sddm|lightdm)\.service$/, 'display server'],
	[/^(ssh|sshd)(@.*)?\.(service|socket)$/, 'SSH server: the way to this host'],
	[/^(docker|containerd|crio|podman|kubelet|k3s|lxcfs)\.service$/, 'container runtime'],
	[/^(systemd-.*|dbus|init)\.(service|scope)$/, 'system manager'],
];

/**
 * Why a process must never be signalled, in words; null when it may be. By pid, by name (cut to 15 bytes), by unit, by
 * `ownPids` (see `ownLine`), and by owner: processes of another guest
 * belong to that guest. Source: failure-modes b4; case "a blanket kill also hits the infrastructure".
 */
export function protectedReason(
	process: Pick<Process, 'pid' | 'name'> & {readonly parentPid?: number},
	owner: Owner,
	ownPids: readonly number[] = [],
): string | null {
	if (process.pid === 1) return 'first process of this system';
	if (process.pid === 2 || process.parentPid === 2) return 'kernel thread';
	if (ownPids.includes(process.pid)) return 'this console or what it was started from';
	if (owner.kind === 'guest') return `belongs to guest ${owner.guest}: act inside that guest`;
	if (owner.kind === 'container' && owner.engine === 'lxc-monitor') return 'container monitor of the host';
	const unit = owner.kind === 'unit' ? owner.unit : null;
	const byUnit = unit === null ? undefined : BY_UNIT.find(([pattern]) => pattern.test(unit));
	return byUnit?.[1] ?? BY_NAME.find(([pattern]) => pattern.test(process.name))?.[1] ?? null;
}

/** A process and all it descends from, nearest first, as far as the table tells. */
export function lineage(pid: number, processes: readonly Pick<Process, 'pid' | 'parentPid'>[]): readonly number[] {
	const line: number[] = [];
	const parentOf = (child: number) => processes.find(process => process.pid === child)?.parentPid ?? 0;
	for (let at = pid; at > 0 && !line.includes(at); at = parentOf(at)) line.push(at);
	return line;
}

/**
 * Pids of this console and of what it was started from, in the table of a host; empty where the table does not show it. Our
 * pid alone would name a stranger behind `nsenter`, `docker exec` or `pct exec` on this very machine, and on any other: the
 * start ticks and the boot tell whether it is us, by whatever route the table came.
 */
export function ownLine(
	own: Identity | null | undefined,
	{bootId, processes}: Pick<ProcessFacts, 'bootId' | 'processes'>,
): readonly number[] {
	return own && own.bootId === bootId && processOf(processes, own) ? lineage(own.pid, processes) : [];
}
