import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {expect, test} from 'vitest';
import {readConfig, showTrouble} from '../../../src/ops/config/config.ts';

const EXAMPLE = readFileSync(join(import.meta.dirname, '../../fixtures/config/incident.yaml'), 'utf8');
const troubles = (text: string) => {
	const result = readConfig(text, 'relight.yaml');
	return result.ok ? [] : result.troubles.map(showTrouble);
};

test("the incident's configuration is read whole", () => {
	const result = readConfig(EXAMPLE, 'relight.yaml');
	if (!result.ok) throw new Error(result.troubles.map(showTrouble).join('\n'));
	const [target] = result.targets;
	expect(target?.routes.map(({ssh, through}) => ({ssh, through}))).toEqual([
		{ssh: 'root@gpu.example', through: null},
		{ssh: 'root@pve.example', through: ['pct', 'exec', '129', '--']},
	]);
	expect(target?.expect).toEqual({
		gpus: 8,
		mounts: [
			{path: '/data', type: null, source: null, volume: '6f1c', freeBytes: 2e12},
			{path: '/dev/shm', type: 'tmpfs', source: null, volume: null, freeBytes: 64e9},
		],
	});
	expect(target?.server?.env.NCCL_MAX_NCHANNELS).toBe('16');
	expect(target?.server?.args).toEqual(
		'--trust-remote-code --tp-size 8 --mem-fraction-static 0.88 --host 0.0.0.0 --disable-cuda-graph --disable-radix-cache --disable-custom-all-reduce --log-level info'.split(
			' ',
		),
	);
	expect(target?.extraction).toMatchObject({
		records: 37_312,
		tokens: 87_700_000,
		layout: 'legacy',
		maxTokens: 8_192,
		concurrency: 4,
		groupSize: 2_000,
		confirmMs: 60_000,
	});
	expect(target?.dump).toEqual({dir: '/dev/shm/sglang_hs', limitBytes: 64e9});
});

test('how near the cards must be is one of the words that the tool has', () => {
	const host = (links: string) => `hosts: {a: {routes: [{local: true}], expect: {links: ${links}}}}`;
	const result = readConfig(host('NV'), 'relight.yaml');
	expect(result.ok && result.targets[0]?.expect).toEqual({gpus: null, links: 'NV', mounts: []});
	expect(troubles(host('nvlink')).join()).toContain('links');
});

test('a route may be local or SSH, each behind a prefix, with files of its own', () => {
	const text =
		'hosts: {a: {routes: [{local: true, through: docker exec -i gpu}, {ssh: gpu, key: ~/k, knownHosts: /n, sshConfig: ~/c, through: [sudo, -n]}]}}';
	const result = readConfig(text, 'relight.yaml');
	expect(result.ok && result.targets[0]?.routes.map(({environment, ...route}) => route)).toEqual([
		{
			ssh: null,
			through: ['docker', 'exec', '-i', 'gpu'],
			identityFile: null,
			knownHostsFile: null,
		},
		{ssh: 'gpu', through: ['sudo', '-n'], identityFile: '~/k', knownHostsFile: '/n', sshConfigFile: '~/c'},
	]);
});

test.each([
	[
		'a key that does not exist',
		'hosts:\n  a:\n    routes:\n      - local: true\n    colour: red\n',
		['relight.yaml:5: hosts.a.colour: no such setting'],
	],
	['a missing host', '', ['relight.yaml:1: hosts: expected record, it is missing']],
	[
		'a wrong type',
		'hosts:\n  a:\n    routes:\n      - local: true\n    expect:\n      gpus: eight\n',
		['relight.yaml:6: hosts.a.expect.gpus: expected number, not string'],
	],
	[
		'a path that is not absolute',
		'hosts: {a: {routes: [{local: true}]}}\ndump:\n  dir: shm\n',
		['relight.yaml:3: dump.dir: expected an absolute path on the host'],
	],
	[
		'two kinds of route at once',
		'hosts:\n  a:\n    routes:\n      - local: true\n        ssh: x\n',
		['relight.yaml:4: hosts.a.routes.0: expected `local: true` or `ssh: [user@]host[:port]`'],
	],
	[
		'a size without sense',
		'hosts: {a: {routes: [{local: true}]}}\ndump: {dir: /x, limit: lots}\n',
		['relight.yaml:2: dump.limit: expected a number with an optional unit: 512M, 2T, 64Gi'],
	],
	[
		'broken YAML',
		'hosts:\n  a: [1\n',
		['relight.yaml:3: Flow sequence in block collection must be sufficiently indented and end with a ]'],
	],
	[
		'a port out of range',
		`${EXAMPLE.replace('port: 8000', 'port: 80000')}`,
		['relight.yaml:16: server.port: Too big: expected number to be <=65535'],
	],
])('%s is told with file, line and key', (_name, text, expected) => {
	expect(troubles(text)).toEqual(expected);
});
