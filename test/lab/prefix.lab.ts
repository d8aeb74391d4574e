import {type ChildProcess, spawn, spawnSync} from 'node:child_process';
import {afterEach, expect} from 'vitest';
import {type Lane, openLane} from '../../src/ops/transports/lane.ts';
import {localTransport} from '../../src/ops/transports/local.ts';
import {throughTransport} from '../../src/ops/transports/through.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';
import {until} from '../support/until.ts';
import {all, lab, program, root} from './needs.ts';
import {childrenOf, send} from './sshd.ts';

const LIMITS = {limitMs: 10_000, capBytes: 100_000};
const lanes: Lane[] = [];
const started: ChildProcess[] = [];
afterEach(async () => {
	for (const lane of lanes.splice(0)) lane.close();
	for (const child of started.splice(0)) {
		const pid = child.pid as number;
		for (const each of [...childrenOf(pid), pid]) send(each, 'SIGKILL');
		await until(() => child.exitCode !== null || child.signalCode !== null);
	}
});

function through(...prefix: string[]): Lane {
	const lane = openLane(throughTransport(localTransport(SYSTEM_ENVIRONMENT), prefix, SYSTEM_ENVIRONMENT));
	lanes.push(lane);
	return lane;
}

/** A process with namespaces of its own and another host name, as a container's first one. */
async function contained(): Promise<number> {
	const child = spawn('unshare', ['-m', '-u', '-p', '-f', 'sh', '-c', 'hostname inside; exec sleep 600']);
	started.push(child);
	const first = () => childrenOf(child.pid as number)[0];
	await until(() => first() !== undefined);
	const pid = first() as number;
	await until(() => spawnSync('nsenter', ['-t', String(pid), '-u', 'hostname']).stdout.toString() === 'inside\n');
	return pid;
}

lab(
	'nsenter leads into the namespaces of a process, and says when that is gone',
	all(root, program('nsenter', 'util-linux')),
	async () => {
		const pid = await contained();
		const lane = through('nsenter', '-t', String(pid), '-a');
		const outcome = await lane.request('hostname; ps -o comm= -p 1 || cat /proc/1/comm; echo "$HOME $LC_ALL"', LIMITS);
		expect(outcome.ok && outcome.value.stdout.split('\n')[0]).toBe('inside');
		expect(outcome.ok && outcome.value.stdout).toContain('/root C');
		send(pid, 'SIGKILL');
		await until(() => spawnSync('kill', ['-0', String(pid)]).status !== 0);
		expect(await through('nsenter', '-t', String(pid), '-a').request('echo x', LIMITS)).toMatchObject({
			ok: false,
			failure: {kind: 'unreachable', phase: 'start', detail: expect.stringMatching(`^process ${pid} is gone`)},
		});
	},
);

lab(
	'sudo that wants a password says what to do',
	all(root, program('sudo', 'sudo'), program('setpriv', 'util-linux')),
	async () => {
		const nobody = throughTransport(
			localTransport(SYSTEM_ENVIRONMENT),
			['setpriv', '--reuid', '65534', '--clear-groups'],
			SYSTEM_ENVIRONMENT,
		);
		const lane = openLane(throughTransport(nobody, ['sudo', '-n'], SYSTEM_ENVIRONMENT));
		lanes.push(lane);
		expect(await lane.request('echo x', LIMITS)).toMatchObject({
			ok: false,
			failure: {kind: 'denied', detail: expect.stringMatching(/^sudo needs a password there/)},
		});
		const direct = await through('sudo', '-n').request('id -u', LIMITS);
		expect(direct.ok && direct.value.stdout).toBe('0\n');
	},
);

const docker = (): string | null => {
	const asked = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], {timeout: 5_000});
	return asked.status === 0
		? null
		: `no docker daemon answers (${asked.stderr?.toString().trim().split('\n')[0] || asked.error?.message})`;
};

lab('docker says that a container is not there', docker, async () => {
	expect(await through('docker', 'exec', 'relight-lab-not-there').request('echo x', LIMITS)).toMatchObject({
		ok: false,
		failure: {detail: 'there is no container relight-lab-not-there: `docker ps -a` lists them'},
	});
});

lab(
	'a docker daemon that does not answer is named',
	() => (docker() === null ? 'a docker daemon answers' : program('docker', 'docker-cli')()),
	async () => {
		expect(await through('docker', 'exec', 'gpu').request('echo x', LIMITS)).toMatchObject({
			ok: false,
			failure: {kind: 'unreachable', detail: 'the docker daemon does not run there'},
		});
	},
);
