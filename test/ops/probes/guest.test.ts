import {describe, expect, it} from 'vitest';
import {guest} from '../../../src/ops/probes/guest.ts';
import type {RouteConfig} from '../../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';
import {answerOf, contextOf, look, makeTree, pathWith} from './support.ts';

const route = (through: readonly string[] | null): RouteConfig => ({
	ssh: 'root@pve.example',
	through,
	identityFile: null,
	knownHostsFile: null,
	environment: SYSTEM_ENVIRONMENT,
});
const target = {routes: [route(null), route(['pct', 'exec', '129', '--'])]};
const parse = (status: string, parts: {lock?: string; frozen?: string; storage?: string} = {}) =>
	guest.parse(
		answerOf({status, lock: parts.lock ?? '', frozen: parts.frozen ?? '', storage: parts.storage ?? ''}),
		contextOf({target}),
	);

describe('the guest as its hypervisor sees it', () => {
	it('is asked by the number of the route that leads through', () => {
		expect(guest.script(contextOf({target}))).toContain('timeout -k 1 5 pct status 129');
		expect(guest.script(contextOf())).toBeNull();
		expect(guest.script(contextOf({target: {routes: [route(['docker', 'exec', '-i', 'x'])]}}))).toBeNull();
	});

	it.each<[string, string, Parameters<typeof parse>[1], string]>([
		['runs', 'status: running\n0\n', {}, 'the guest runs: its network or sshd is silent'],
		[
			'stopped and locked',
			'status: stopped\n0\n',
			{lock: 'lock: backup\n'},
			'the guest is stopped and locked (backup)',
		],
		['frozen, v2', 'status: running\n0\n', {frozen: 'populated 1\nfrozen 1\n'}, 'the guest is frozen'],
		['frozen, v1', 'status: running\n0\n', {frozen: 'FROZEN\n'}, 'the guest is frozen'],
		[
			'thawed',
			'status: running\n0\n',
			{frozen: 'populated 1\nfrozen 0\n'},
			'the guest runs: its network or sshd is silent',
		],
		[
			'storage full',
			'status: running\n0\n',
			{storage: 'HEALTH_ERR 1 full osd(s)\nmore\n'},
			'the guest runs: its network or sshd is silent; storage says HEALTH_ERR 1 full osd(s)',
		],
		['no answer', '124\n', {}, 'the hypervisor does not answer about its guest'],
		[
			'no pct',
			"timeout: failed to run command 'pct': No such file or directory\n127\n",
			{},
			'the outer route is no hypervisor: no `pct` there',
		],
		[
			'no such guest',
			"Configuration file 'x' does not exist\n2\n",
			{},
			"the hypervisor cannot tell: Configuration file 'x' does not exist",
		],
	])('%s', (_, status, parts, verdict) => {
		expect(parse(status, parts).verdict).toBe(verdict);
	});

	it('for real, with stand-ins', async () => {
		const tree = makeTree({
			'bin/pct':
				'#!/bin/sh\ncase $1 in status) echo "status: running" ;; config) echo "arch: amd64"; echo "lock: snapshot" ;; esac\n',
			'bin/ceph': '#!/bin/sh\necho HEALTH_OK\n',
			'sys/fs/cgroup/lxc/129/cgroup.events': 'populated 1\nfrozen 1\n',
		});
		expect(await look(guest, contextOf({target}), {sys: `${tree.root}/sys`, path: pathWith(tree.root)})).toEqual({
			status: 'running',
			lock: 'snapshot',
			frozen: true,
			storage: 'HEALTH_OK',
			verdict: 'the guest is frozen and locked (snapshot)',
		});
		tree.remove();
	});
});
