import {readFileSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {afterAll, afterEach, beforeEach, describe, expect, test} from 'vitest';
import {type Lane, openLane} from '../../../src/ops/transports/lane.ts';
import {localTransport} from '../../../src/ops/transports/local.ts';
import {completePrefix} from '../../../src/ops/transports/prefix.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {throughTransport} from '../../../src/ops/transports/through.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';
import {prefixPrograms} from '../../support/prefix-programs.ts';
import {OPERATOR, startSshServer} from '../../support/ssh-server.ts';

const LIMITS = {limitMs: 10_000, capBytes: 100_000};
const programs = prefixPrograms();
const lanes: Lane[] = [];
beforeEach(() => rmSync(join(programs, 'way'), {force: true}));
afterEach(() => {
	for (const lane of lanes.splice(0)) lane.close();
});
afterAll(() => rmSync(programs, {recursive: true}));

const far = {...SYSTEM_ENVIRONMENT, home: '/far/my home'};

function laneThrough(prefix: string) {
	const outer = localTransport({...SYSTEM_ENVIRONMENT, path: `${programs}:${SYSTEM_ENVIRONMENT.path}`});
	const transport = throughTransport(outer, prefix.split(' '), far);
	const lane = openLane(transport);
	lanes.push(lane);
	return {transport, lane};
}

const way = () => readFileSync(join(programs, 'way'), 'utf8').trim().split('\n');

const AWKWARD = `printf '%s|' "it's" 'a  b' "$HOME" "$LC_ALL" "$PATH"; printf '%s\\n' '$x "q" \\n *'`;
const EXPECTED = `it's|a  b|/far/my home|C|${SYSTEM_ENVIRONMENT.path}|$x "q" \\n *\n`;

test.each([
	['pct exec 129 --', ['pct 129']],
	['docker exec -i gpu', ['docker gpu']],
	['nsenter -t 4711 -a', ['nsenter 4711']],
	['sudo -n', ['sudo root']],
	['sudo -n docker exec -i gpu', ['sudo root', 'docker gpu']],
	['sudo -n -u ops nsenter -t 5 -a', ['sudo ops', 'nsenter 5']],
	['ssh inner', ['ssh inner']],
	['docker exec -t gpu', ['docker gpu']],
	['pct exec 129', ['pct 129']],
	['sudo', ['sudo root']],
	['pct exec 129 -- docker exec gpu', ['pct 129', 'docker gpu']],
	['sudo docker exec -u root gpu nsenter -t 5 -a', ['sudo root', 'docker gpu', 'nsenter 5']],
	['sudo -n ssh inner', ['sudo root', 'ssh inner']],
])('%s leads to a shell with a fixed environment, and every word arrives as it was', async (prefix, expected) => {
	const {lane} = laneThrough(prefix);
	const outcome = await lane.request(AWKWARD, LIMITS);
	expect(outcome.ok && outcome.value.stdout).toBe(EXPECTED);
	expect(way()).toEqual(expected);
	expect(await lane.request('exit 3', LIMITS)).toMatchObject({ok: true, value: {status: 3}});
});

test('the same over ssh, where one more shell is crossed', async () => {
	const server = await startSshServer();
	const outer = sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR);
	const lane = openLane(throughTransport(outer, [join(programs, 'docker'), 'exec', '-i', 'gpu'], far));
	const outcome = await lane.request(AWKWARD, LIMITS);
	lane.close();
	outer.close();
	server.close();
	expect(outcome.ok && outcome.value.stdout).toBe(EXPECTED);
});

test.each([
	['pct exec 129', 'pct exec 129 --'],
	['docker exec gpu', 'docker exec -i gpu'],
	['docker exec -it gpu', 'docker exec -i gpu'],
	['podman exec -u 0 -t gpu', 'podman exec -i -u 0 gpu'],
	['sudo', 'sudo -n'],
	['sudo -u ops', 'sudo -n -u ops'],
	['sudo -nH docker exec gpu', 'sudo -nH docker exec -i gpu'],
	['sudo pct exec 129', 'sudo -n pct exec 129 --'],
	['pct exec 129 docker exec gpu', 'pct exec 129 -- docker exec -i gpu'],
	['docker exec -e A=b sudo', 'docker exec -i -e A=b sudo'],
	['nsenter -t 1 -m -p', 'nsenter -t 1 -m -p'],
	['chroot /mnt', 'chroot /mnt'],
])('%s is completed: %s', (given, complete) => {
	expect(completePrefix(given.split(' '))).toEqual(complete.split(' '));
});

describe('what the prefix says when it starts nothing', () => {
	test.each([
		['docker exec -i gone', 'unreachable', 'there is no container gone: `docker ps -a` lists them'],
		['docker exec -i halted', 'unreachable', 'container halted is not running: `docker start halted` starts it'],
		['docker exec -i paused', 'unreachable', 'container paused is paused: `docker unpause paused` lets it go on'],
		[
			'docker exec -i forbidden',
			'denied',
			'this user may not use docker: another user in `ssh:`, or `through: sudo -n docker exec -i forbidden`',
		],
		['docker exec -i down', 'unreachable', 'the docker daemon does not run there'],
		['nsenter -t 99 -a', 'unreachable', /^process 99 is gone: find the new pid/],
		['nsenter -t 98 -a', 'denied', /^nsenter needs root there: .*`through: sudo -n nsenter -t 98 -a`$/],
		[
			'sudo -n -u locked',
			'denied',
			'sudo needs a password there: allow this user NOPASSWD in sudoers, or log in as root',
		],
		['sudo -n -u stranger', 'denied', 'ops may not use sudo there: log in as another user'],
		['sudo -n docker exec -i gone', 'unreachable', 'there is no container gone: `docker ps -a` lists them'],
		[
			'pct exec 129 -- docker exec halted',
			'unreachable',
			'container halted is not running: `docker start halted` starts it',
		],
		['pct exec 7 --', 'unreachable', 'CT 7 is stopped: `pct start 7` on the hypervisor starts it'],
		['pct exec 8 --', 'unreachable', 'there is no CT 8 on this node: `pct list` there shows them'],
		['pct exec 9 --', 'unreachable', /^CT 9 is locked \(backup\): wait for its end; `pct unlock 9` only/],
		['pct exec 10 --', 'unreachable', 'CT 10 is stopped: `pct start 10` on the hypervisor starts it'],
		['qm guest exec 5', 'unreachable', 'there is no `qm` there'],
		['podman exec -i gpu', 'unreachable', 'there is no `podman` there'],
	])('%s: %s', async (prefix, kind, detail) => {
		const {lane} = laneThrough(prefix);
		const outcome = await lane.request('echo x', LIMITS);
		expect(!outcome.ok && outcome.failure).toMatchObject({
			kind,
			detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
		});
	});

	test('once the shell has taken the request nothing it prints explains its end away', async () => {
		const {lane} = laneThrough('sudo -n');
		const taken = await lane.request(`echo 'sudo: a password is required' >&2; kill -9 $$; sleep 1`, LIMITS);
		expect(!taken.ok && taken.failure.kind).toBe('lost');
	});
});
