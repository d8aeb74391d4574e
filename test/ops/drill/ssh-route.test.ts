import type {Client} from 'ssh2';
import {afterAll, beforeAll, describe, expect, test} from 'vitest';
import {type Box, buildBox} from '../../../src/ops/drill/box.ts';
import {connect, exec, open} from './support/client.ts';
import {until} from './support/shell.ts';

let box: Box;
const clients: Client[] = [];

beforeAll(async () => {
	box = await buildBox({seed: 3, scale: 0.05, program: ['/bin/false']});
});
afterAll(async () => {
	for (const client of clients) client.end();
	await box.close();
});

async function hypervisor(): Promise<Client> {
	const client = await connect(box, box.hypervisor.port);
	client.on('error', () => {});
	clients.push(client);
	return client;
}

const within = <T>(promise: Promise<T>, ms: number): Promise<T | 'silent'> =>
	Promise.race([promise, new Promise<'silent'>(resolve => setTimeout(() => resolve('silent'), ms))]);

describe('the hypervisor route', () => {
	test('runs a lane in the container through pct', async () => {
		const client = await hypervisor();
		const {path, proc} = box.target.routes[1]?.environment ?? {path: '', proc: ''};
		const lane = `pct exec 129 -- env -i PATH=${path} PROC=${proc} /bin/sh`;
		const ended = await exec(client, lane, 'systemctl is-active vllm-kimi-k25-int4; cat "$PROC/1/comm"; exit 3\n');
		expect(ended).toEqual({code: 3, signal: null, stdout: 'active\nsystemd\n', stderr: ''});
	});

	test('tells exit status, signal, both streams, and all of a large output', async () => {
		const client = await hypervisor();
		expect(await exec(client, 'echo out; echo err >&2; exit 7')).toEqual({
			code: 7,
			signal: null,
			stdout: 'out\n',
			stderr: 'err\n',
		});
		expect(await exec(client, 'kill -9 $$')).toMatchObject({code: null, signal: 'SIGKILL'});
		expect((await exec(client, 'head -c 3000000 /dev/zero | tr "\\0" x')).stdout).toHaveLength(3_000_000);
	});

	test('passes signals on to the command', async () => {
		const client = await hypervisor();
		const channel = await open(client, 'exec sleep 30');
		const ended = new Promise(resolve =>
			channel.on('exit', (code: number | null, signal?: string) => resolve([code, signal])),
		);
		channel.signal('TERM');
		expect(await ended).toEqual([null, 'SIGTERM']);
	});

	test('has no terminal to give, and no eleventh session', async () => {
		const client = await hypervisor();
		await expect(open(client, 'true', true)).rejects.toThrow();
		const ten = await Promise.all(Array.from({length: 10}, () => open(client, 'sleep 5')));
		await expect(open(client, 'true')).rejects.toThrow('open failure');
		for (const channel of ten) channel.close();
		await until(
			() =>
				within(
					exec(client, 'echo again').catch(() => 'refused' as const),
					1_000,
				),
			end => typeof end === 'object',
		);
	});

	test('answers within a few milliseconds', async () => {
		const client = await hypervisor();
		const channel = await open(client, '/bin/sh');
		const times: number[] = [];
		for (let turn = 0; turn < 20; turn++) {
			const at = performance.now();
			channel.write('echo x\n');
			await new Promise(resolve => channel.once('data', resolve));
			times.push(performance.now() - at);
		}
		channel.end();
		expect(times.sort((a, b) => a - b)[10]).toBeLessThan(40);
	});

	test('takes no other key', async () => {
		const client = new (await import('ssh2')).default.Client();
		const {default: ssh2} = await import('ssh2');
		const failed = new Promise<Error>(resolve => client.on('error', resolve));
		client.connect({
			host: '127.0.0.1',
			port: box.hypervisor.port,
			username: 'root',
			privateKey: ssh2.utils.generateKeyPairSync('ed25519').private,
		});
		expect((await failed).message).toContain('authentication');
	});
});

describe('ways to be frozen', () => {
	test('direct, in the incident: a port that accepts and says nothing', async () => {
		await expect(connect(box, box.direct.port, 600)).rejects.toThrow('Timed out while waiting for handshake');
	});

	test('session requests unanswered: exec never calls back, running commands fall silent, the link stays', async () => {
		const client = await hypervisor();
		const lane = await open(client, '/bin/sh');
		box.hypervisor.freeze('no-sessions');
		const told = new Promise(resolve => lane.once('data', resolve));
		lane.write('echo hello\n');
		expect(await within(open(client, 'true'), 400)).toBe('silent');
		expect(await within(told, 200)).toBe('silent');
		await box.hypervisor.thaw();
		expect(String(await told)).toBe('hello\n');
		expect((await exec(client, 'echo back')).stdout).toBe('back\n');
	});

	test('sockets paused: nothing at all until it thaws', async () => {
		const client = await hypervisor();
		box.hypervisor.freeze('paused');
		const answer = exec(client, 'echo late');
		expect(await within(answer, 400)).toBe('silent');
		await box.hypervisor.thaw();
		expect(await answer).toMatchObject({stdout: 'late\n'});
	});

	test('refused: nobody listens, and somebody does again', async () => {
		box.hypervisor.freeze('refused');
		await expect(connect(box, box.hypervisor.port)).rejects.toThrow('ECONNREFUSED');
		await box.hypervisor.thaw();
		expect((await exec(await hypervisor(), 'echo here')).stdout).toBe('here\n');
	});
});
