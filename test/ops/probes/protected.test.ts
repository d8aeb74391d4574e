import {describe, expect, it} from 'vitest';
import {ownerOf} from '../../../src/ops/formats/cgroup.ts';
import {readQuery} from '../../../src/ops/formats/nvidia-smi.ts';
import type {Owner} from '../../../src/ops/probes/processes.ts';
import {lineage, protectedReason} from '../../../src/ops/probes/protected.ts';
import {fixture} from './support.ts';

const NONE: Owner = {kind: 'none'};

describe('a blanket kill would also hit the infrastructure', () => {
	/** PID and name of each line, node names left out; a pid under several nodes counts once. */
	const users = new Map(
		[...fixture('fuser/do-not-kill.txt').matchAll(/(\d+) [F.][.rem]+ (.+)$/gm)].map(([, pid, name = '']) => [
			Number(pid),
			name,
		]),
	);
	const units: Record<string, string> = JSON.parse(fixture('fuser/do-not-kill-units.json'));
	const ownPids = [1999, 1990, 1];
	const owner = (pid: number): Owner => (units[pid] ? {kind: 'unit', unit: units[pid]} : NONE);

	it('leaves the two processes of the model server', () => {
		const reasons = [...users].map(([pid, name]) => [pid, protectedReason({pid, name}, owner(pid), ownPids)]);
		expect(reasons).toEqual([
			[864, 'display server'],
			[912, 'infrastructure of the driver'],
			[1203, 'infrastructure of the driver'],
			[1304, 'GPU monitoring (DCGM)'],
			[1402, null],
			[1455, null],
			[1999, 'this console or what it was started from'],
			[2100, 'GPU monitoring (DCGM)'],
		]);
	});

	it('knows them by the name cut to 15 bytes as well, without a unit', () => {
		const kept = [...users].filter(([pid, name]) => protectedReason({pid, name}, NONE, ownPids) === null);
		expect(kept.map(([pid]) => pid)).toEqual([1402, 1455]);
	});

	it.each([
		['sshd', 'SSH server: the way to this host'],
		['containerd-shim', 'container runtime'],
		['qemu-system-x86', 'virtual machine: it may hold the GPU by pass-through'],
		['nvidia-cuda-mps', 'MPS: end it with `echo quit | nvidia-cuda-mps-control`'],
		['python3', null],
		['systemd-run', null],
	])('%s', (name, reason) => {
		expect(protectedReason({pid: 500, name}, NONE)).toBe(reason);
	});

	it('protects the first process, kernel threads and other guests', () => {
		expect(protectedReason({pid: 1, name: 'anything'}, NONE)).toBe('first process of this system');
		expect(protectedReason({pid: 9, name: 'kworker/0:1', parentPid: 2}, NONE)).toBe('kernel thread');
		expect(protectedReason({pid: 9, name: 'python3'}, {kind: 'guest', guest: '130', unit: null})).toBe(
			'belongs to guest 130: act inside that guest',
		);
	});

	it('finds the line of ancestors, also in a table with a circle', () => {
		const table = [
			{pid: 5, parentPid: 4},
			{pid: 4, parentPid: 1},
			{pid: 1, parentPid: 0},
			{pid: 8, parentPid: 8},
		];
		expect(lineage(5, table)).toEqual([5, 4, 1]);
		expect(lineage(8, table)).toEqual([8]);
	});
});

describe('workers that outlive their container are found by owner and device use', () => {
	it('one belongs to a container scope, one to no unit; both may be ended', () => {
		const fields = ['gpu_uuid', 'pid', 'used_memory', 'process_name'];
		const {rows} = readQuery(fixture('nvidia-smi/workers-outlive-apps.csv'), fields);
		const owners: Record<string, Owner> = {
			7001: ownerOf(fixture('cgroup/docker-scope.txt')),
			7002: ownerOf(fixture('cgroup/root.txt')),
		};
		expect(owners).toEqual({7001: {kind: 'container', engine: 'docker', id: '0123456789ab'}, 7002: {kind: 'none'}});
		const reasons = rows.map(row => {
			const pid = row.get('pid') ?? '';
			return protectedReason({pid: Number(pid), name: 'VLLM::Worker_TP', parentPid: 1}, owners[pid] ?? NONE);
		});
		expect(reasons).toEqual([null, null]);
	});
});
