import {describe, expect, it} from 'vitest';
import {readKernelLine} from '../../../src/ops/formats/kernel-lines.ts';
import {findingsIn, type KernelFinding, kernelLog} from '../../../src/ops/probes/kernel-log.ts';
import {answerOf, contextOf, fixture, look, makeTree, pathWith} from './support.ts';

const BASE: Omit<KernelFinding, 'kind' | 'text' | 'advice'> = {
	at: null,
	sinceBootSeconds: null,
	count: 1,
	busId: null,
	xid: null,
	pid: null,
};
const read = (text: string) => findingsIn(text).findings;

describe('a burst of one Xid is one finding, and the hung task another', () => {
	it('folds six lines that differ in the channel alone', () => {
		expect(read(fixture('dmesg/ctime-xid45-burst.txt'))).toEqual([
			{
				...BASE,
				kind: 'xid',
				count: 6,
				text: 'NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=trainer, Ch 0000000a',
				busId: '61:00',
				xid: 45,
				pid: 1496200,
				advice: 'channels torn down: look for an earlier Xid; alone after a kill of ours it is normal',
			},
			{
				...BASE,
				kind: 'hung-task',
				text: 'INFO: task cache_mgr_event:620917 blocked for more than 120 seconds.',
				pid: 620917,
				advice: 'it waits for storage or the driver and cannot be killed until that answers: see the mounts',
			},
		]);
	});
});

describe('a card that is lost is in the kernel log under the same address', () => {
	it('reads the records of /dev/kmsg', () => {
		expect(read(fixture('dmesg/kmsg-gpu-is-lost.txt'))).toEqual([
			{
				...BASE,
				kind: 'xid',
				sinceBootSeconds: 88231.000456,
				text: "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
				busId: '02:00',
				xid: 79,
				advice: 'the card has fallen off the bus: reboot; if it comes back look at power, PCIe and heat',
			},
		]);
	});
});

describe('ext4 that turned read-only after an error', () => {
	it('has the error and the remount, in seconds since boot', () => {
		expect(
			read(fixture('dmesg/seconds-emergency-ro.txt')).map(({kind, sinceBootSeconds}) => [kind, sinceBootSeconds]),
		).toEqual([
			['io-error', 1530.756716],
			['read-only', 1530.759515],
		]);
	});
});

describe('kernel log', () => {
	it.each([
		['Out of memory: Killed process 4242 (python3) total-vm:1kB', 'oom-kill', 4242],
		['oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python3,pid=77,uid=0', 'oom-kill', 77],
		['blk_update_request: I/O error, dev sdb, sector 1', 'io-error', null],
		['nvme nvme1: I/O timeout, completion polled', 'io-error', null],
		['XFS (nvme1n1): Filesystem has been shut down due to log error', 'read-only', null],
		['BTRFS info (device sdb): forced readonly', 'read-only', null],
		['libceph: osdc handle_map: cluster is full (osdmap FULL)', 'storage-full', null],
		['libceph: pool 3 is full or reached quota', 'storage-full', null],
		['python3[812]: segfault at 0 ip 0000 sp 0000 error 4', 'segfault', 812],
		['usb 1-1: new device', null, null],
	])('%s', (text, kind, pid) => {
		const found = read(`[   12.500000] ${text}`).map(finding => [finding.kind, finding.pid, finding.sinceBootSeconds]);
		expect(found).toEqual(kind === null ? [] : [[kind, pid, 12.5]]);
	});

	it('reads a switch error as well', () => {
		const text = 'nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up';
		expect(read(text)).toEqual([
			{
				...BASE,
				kind: 'xid',
				text,
				busId: 'c4:00',
				advice: 'fatal error of the NVSwitch: reset all cards on it together, or reboot',
			},
		]);
	});

	it('places what has a wall time with a zone, in every form', () => {
		const at = Date.parse('2026-11-30T07:42:06.386Z');
		const text =
			'EXT4-fs (vda): mounted filesystem 00000000-0000-0000-0000-000000000000 r/w without journal. Quota mode: none.';
		expect(readKernelLine(fixture('dmesg/2.38-iso.txt').trimEnd())).toEqual({at, sinceBootSeconds: null, text});
		expect(readKernelLine(fixture('dmesg/2.38-seconds.txt').trimEnd())).toEqual({
			at: null,
			sinceBootSeconds: 1.386076,
			text,
		});
		expect(readKernelLine('2026-11-30T09:42:06+0200 box kernel: x')).toEqual({
			at: at - 386,
			sinceBootSeconds: null,
			text: 'x',
		});
		expect(readKernelLine('kern  :err   : [   12.5] x')).toEqual({at: null, sinceBootSeconds: 12.5, text: 'x'});
	});

	it.each([
		['0\n', '', 'dmesg'],
		['1\ndmesg: read kernel buffer failed: Operation not permitted\n', '0\n', 'journal'],
		['1\ndmesg: read kernel buffer failed: Operation not permitted\n', '1\nNo journal files were found.\n', 'denied'],
		['1\ndmesg: denied\n', '127\n', 'denied'],
		['127\n', '127\n', 'unavailable'],
	])('dmesg says %j, the journal %j: %s', (dmesg, journal, source) => {
		expect(kernelLog.parse(answerOf({dmesg, journal}), contextOf())).toEqual({source, findings: [], cursor: null});
	});

	it('reads the real ring of this machine, or says that it may not', async () => {
		const facts = await look(kernelLog, contextOf());
		expect(['dmesg', 'journal', 'denied', 'unavailable']).toContain(facts.source);
	});

	it.each([
		[
			'iso',
			'[ "$1" = --time-format=iso ] && echo "2026-01-01T00:00:00,000000+00:00 NVRM: Xid (PCI:0000:02:00): 79, x" && echo noise',
		],
		['plain', '[ "$1" ] && exit 1; echo noise; echo "[    1.000000] NVRM: Xid (PCI:0000:02:00): 79, x"'],
	])('for real, with a stand-in that knows the %s form: only findings travel', async (_, program) => {
		const tree = makeTree({'bin/dmesg': `#!/bin/sh\n${program}\n`});
		const facts = await look(kernelLog, contextOf(), {path: pathWith(tree.root)});
		expect([facts.source, facts.findings.length, facts.findings[0]?.xid]).toEqual(['dmesg', 1, 79]);
		tree.remove();
	});

	it('for real: a denied ring, then the journal', async () => {
		const tree = makeTree({
			'bin/dmesg': '#!/bin/sh\necho "dmesg: read kernel buffer failed: Operation not permitted" >&2\nexit 1\n',
			'bin/journalctl':
				'#!/bin/sh\necho "2026-01-01T00:00:00+0000 box kernel: NVRM: Xid (PCI:0000:02:00): 31, pid=9, x"\n',
		});
		const facts = await look(kernelLog, contextOf(), {path: pathWith(tree.root)});
		expect([facts.source, facts.findings[0]?.pid, facts.findings[0]?.at]).toEqual(['journal', 9, Date.UTC(2026, 0, 1)]);
		tree.remove();
	});
});
