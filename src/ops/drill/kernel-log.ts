import {readFileSync} from 'node:fs';

/**
 * The kernel's log as `seconds \t level \t text`: the host started, the storage cluster ran full and its clients hung, the
 * container was killed, the new disk came, the container is back. Set into the true uptime, so that no line lies ahead.
 */
export function kernelLog(): string {
	const up = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]);
	const share = (fraction: number): number => Math.max(40, up * fraction);
	const rows: readonly (readonly [at: number, level: number, text: string])[] = [
		[
			0,
			5,
			'Linux version 6.8.12-9-pve (build@proxmox) (gcc (Debian 12.2.0-14) 12.2.0) #1 SMP PREEMPT_DYNAMIC PMX 6.8.12-9',
		],
		[0.004, 6, 'Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.12-9-pve root=ZFS=/ROOT/pve-1 ro quiet'],
		[2.113, 6, 'nvme nvme0: 127/0/0 default/read/poll queues'],
		[6.802, 5, 'nvidia: loading out-of-tree module taints kernel.'],
		[7.551, 6, 'NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build'],
		[9.034, 6, 'nvidia-uvm: Loaded the UVM driver, major device number 511.'],
		[14.662, 6, 'libceph: mon0 (1)10.1.2.11:6789 session established'],
		[14.67, 6, 'libceph: client48812933 fsid 4c1b8a02-6a51-4c0e-92a2-7dd0e1f3b561'],
		[share(0.2), 4, 'libceph: osd7 (1)10.1.2.13:6805 nearfull'],
		[share(0.31), 3, 'libceph: osd7 (1)10.1.2.13:6805 FULL or reached pool quota, request will be blocked'],
		[share(0.32), 3, 'INFO: task python3:1391207 blocked for more than 122 seconds.'],
		[share(0.32) + 0.001, 3, '      Tainted: P           OE      6.8.12-9-pve #1'],
		[share(0.32) + 0.002, 3, '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.'],
		[share(0.36), 3, 'INFO: task python3:1391207 blocked for more than 245 seconds.'],
		[share(0.4), 3, 'rbd: rbd3: write at objno 88213 0~4194304 result -28'],
		[
			share(0.4) + 0.002,
			3,
			'I/O error, dev rbd3, sector 722640896 op 0x1:(WRITE) flags 0x800 phys_seg 64 prio class 0',
		],
		[share(0.41), 3, 'Buffer I/O error on dev rbd3, logical block 90330112, lost async page write'],
		[share(0.42), 2, 'EXT4-fs (rbd3): Remounting filesystem read-only'],
		[share(0.6), 6, 'nvme nvme1: 127/0/0 default/read/poll queues'],
		[share(0.61), 6, ' nvme1n1: p1'],
		[
			share(0.63),
			6,
			'EXT4-fs (nvme1n1p1): mounted filesystem 6f1c2a94-7d3e-4b18-9c05-e1a8f07b2d63 r/w with ordered data mode. Quota mode: none.',
		],
		[share(0.7), 6, 'vmbr0: port 4(veth129i0) entered forwarding state'],
	];
	return [...rows]
		.sort((a, b) => a[0] - b[0])
		.filter(([at]) => at <= up)
		.map(([at, level, text]) => `${at.toFixed(6)}\t${level}\t${text}\n`)
		.join('');
}
