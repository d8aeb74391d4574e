import {type ChildProcess, spawn} from 'node:child_process';
import {mkdtempSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import ssh2, {type Connection, type Server} from 'ssh2';
import type {RouteConfig} from '../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';

/** A real SSH server on loopback whose moods can be changed while clients are connected. */
export type TestServer = {
	readonly port: number;
	readonly route: RouteConfig;
	readonly directory: string;
	readonly sessions: () => number;
	mood: 'well' | 'no sessions' | 'drop on exec';
	pause(): void;
	resume(): void;
	close(): void;
};

export async function startSshServer(
	options: {hostKeyIn?: 'known' | 'changed' | 'unknown'; maxSessions?: number} = {},
): Promise<TestServer> {
	const directory = mkdtempSync(join(tmpdir(), 'relight-ssh-'));
	const hostKey = keyPair();
	const userKey = keyPair();
	writeFileSync(join(directory, 'id'), userKey.private, {mode: 0o600});
	const clients = new Set<Connection>();
	const children = new Set<ChildProcess>();
	let open = 0;
	const server: Server = new ssh2.Server({hostKeys: [hostKey.private]}, client => {
		clients.add(client);
		(client as unknown as {_sock: {setNoDelay(on: boolean): void}})._sock.setNoDelay(true);
		client.on('error', () => {});
		client.on('close', () => clients.delete(client));
		client.on('authentication', context =>
			context.method === 'publickey' ? context.accept() : context.reject(['publickey']),
		);
		client.on('session', (accept, reject) => {
			if (made.mood === 'no sessions') return;
			if (open >= (options.maxSessions ?? 10)) return reject();
			open++;
			const session = accept();
			session.on('close', () => open--);
			session.on('exec', (acceptExec, _reject, info) => {
				const stream = acceptExec();
				if (made.mood === 'drop on exec') return client.end();
				const child = spawn('/bin/sh', ['-c', info.command], {
					cwd: '/',
					detached: true,
					env: {PATH: SYSTEM_ENVIRONMENT.path, MOTD: 'x'},
				});
				children.add(child);
				stream.pipe(child.stdin);
				child.stdin.on('error', () => {});
				child.stdout.pipe(stream, {end: false});
				child.stderr.pipe(stream.stderr, {end: false});
				child.on('close', (code, signal) => {
					children.delete(child);
					if (signal) stream.exit(signal.replace('SIG', ''), false, '');
					else stream.exit(code ?? 255);
					stream.end();
				});
				stream.on('close', () => {
					for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
				});
			});
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	const {port} = server.address() as {port: number};
	const publicKey = (options.hostKeyIn === 'changed' ? userKey : hostKey).public.split(' ').slice(0, 2).join(' ');
	writeFileSync(
		join(directory, 'known_hosts'),
		options.hostKeyIn === 'unknown' ? '' : `[127.0.0.1]:${port} ${publicKey}\n`,
	);
	const sockets = () =>
		[...clients].map(client => (client as unknown as {_sock: {pause(): void; resume(): void}})._sock);
	const made: TestServer = {
		port,
		directory,
		route: {
			ssh: `tester@127.0.0.1:${port}`,
			through: null,
			identityFile: join(directory, 'id'),
			knownHostsFile: join(directory, 'known_hosts'),
			environment: SYSTEM_ENVIRONMENT,
		},
		sessions: () => open,
		mood: 'well',
		pause: () => {
			for (const socket of sockets()) socket.pause();
		},
		resume: () => {
			for (const socket of sockets()) socket.resume();
		},
		close() {
			for (const client of clients) client.end();
			for (const child of children) if (child.pid) process.kill(-child.pid, 'SIGKILL');
			server.close();
		},
	};
	return made;
}

/** One in some hundred of the keys that ssh2 makes cannot be read by ssh2 itself. */
function keyPair(): {private: string; public: string} {
	for (;;) {
		const pair = ssh2.utils.generateKeyPairSync('ed25519');
		if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
	}
}

export const OPERATOR = {user: 'tester', home: '/nonexistent', agent: null};
