import {readFileSync} from 'node:fs';
import {Client, type ClientChannel} from 'ssh2';
import type {Box} from '../../../../src/ops/drill/box.ts';

export type Ended = {
	readonly code: number | null;
	readonly signal: string | null;
	readonly stdout: string;
	readonly stderr: string;
};

export function connect(box: Box, port: number, readyTimeout = 5_000): Promise<Client> {
	return new Promise((resolve, reject) => {
		const client = new Client();
		client.on('ready', () => {
			client.setNoDelay(true);
			resolve(client);
		});
		client.on('error', reject);
		client.connect({
			host: '127.0.0.1',
			port,
			username: 'root',
			privateKey: readFileSync(box.paths.identity),
			hostVerifier: (key: Buffer) =>
				readFileSync(box.paths.knownHosts, 'utf8').includes(`]:${port} ssh-ed25519 ${key.toString('base64')}`),
			readyTimeout,
		});
	});
}

export const open = (client: Client, command: string, pty = false): Promise<ClientChannel> =>
	new Promise((resolve, reject) =>
		client.exec(command, {pty}, (error, channel) => (error ? reject(error) : resolve(channel))),
	);

export async function exec(client: Client, command: string, input = ''): Promise<Ended> {
	const channel = await open(client, command);
	return new Promise(resolve => {
		let stdout = '';
		let stderr = '';
		let end: {code: number | null; signal: string | null} = {code: null, signal: null};
		channel.on('data', (piece: Buffer) => {
			stdout += piece;
		});
		channel.stderr.on('data', (piece: Buffer) => {
			stderr += piece;
		});
		channel.on('exit', (code: number | null, signal?: string) => {
			end = {code, signal: signal ?? null};
		});
		channel.on('close', () => resolve({...end, stdout, stderr}));
		channel.end(input);
	});
}
