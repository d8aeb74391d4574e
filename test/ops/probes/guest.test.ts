import {describe, expect, it} from 'vitest';
import {guest, guestOf} from '../../../src/ops/probes/guest.ts';
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

	it.each<[string, readonly string[] | null, string | null]>([
		['pct itself', ['pct', 'exec', '129', '--'], 'pct 129'],
		['without the dashes', ['pct', 'exec', '129'], 'pct 129'],
		['by its path', ['/usr/sbin/pct', 'exec', '129', '--'], '/usr/sbin/pct 129'],
		['behind sudo', ['sudo', '-n', 'pct', 'exec', '129', '--'], 'sudo -n pct 129'],
		['behind a sudo that would ask', ['sudo', 'pct', 'exec', '129', '--'], 'sudo -n pct 129'],
		[
			'behind a sudo with a user',
			['/usr/bin/sudo', '-n', '-u', 'root', '/usr/sbin/pct', 'exec', '129'],
			'/usr/bin/sudo -n -u root /usr/sbin/pct 129',
		],
		['behind another node', ['ssh', 'pve2', 'pct', 'exec', '129', '--'], 'ssh pve2 pct 129'],
		['with more behind it', ['pct', 'exec', '129', '--', 'docker', 'exec', '-i', 'ml'], 'pct 129'],
		['a guest in a guest, by the outer one', ['pct', 'exec', '129', '--', 'pct', 'exec', '5', '--'], 'pct 129'],
		['no guest', ['docker', 'exec', '-i', 'pct'], null],
		['another verb', ['pct', 'enter', '129'], null],
		['no number', ['pct', 'exec', '--', 'sh'], null],
		['a virtual machine', ['qm', 'guest', 'exec', '101', '--'], null],
		['a direct route', null, null],
	])('is found in the words of the route: %s', (_, through, wanted) => {
		const found = guestOf({routes: [route(null), route(through)]});
		expect(found && `${found.pct.join(' ')} ${found.id}`).toBe(wanted);
	});

	it('is asked with the words that the route goes by', () => {
		const script = guest.script(
			contextOf({target: {routes: [route(['sudo', '-n', '/opt/a b/pct', 'exec', '129', '--'])]}}),
		);
		expect(script).toContain("timeout -k 1 5 sudo -n '/opt/a b/pct' status 129 2>&1");
		expect(script).toContain("timeout -k 1 5 sudo -n '/opt/a b/pct' config 129 2>/dev/null");
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
