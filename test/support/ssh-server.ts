import {type ChildProcess, spawn} from 'node:child_process';
import type {EventEmitter} from 'node:events';
import {mkdtempSync, writeFileSync} from 'node:fs';
import {connect} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import ssh2, {type AuthContext, type Connection, type Server} from 'ssh2';
import type {RouteConfig} from '../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';

/** A real SSH server on loopback whose moods can be changed while clients are connected. */
export type TestServer = {
	readonly port: number;
	readonly route: RouteConfig;
	readonly directory: string;
	readonly sessions: () => number;
	/** Whoever got in, in order. */
	readonly users: readonly string[];
	/** Connections that stand. */
	readonly connections: () => number;
	mood: 'well' | 'no sessions' | 'drop on exec';
	pause(): void;
	resume(): void;
	/** New connections are taken and never answered. */
	freeze(): void;
	close(): void;
};

export type TestServerOptions = {
	readonly hostKeyIn?: 'known' | 'changed' | 'unknown';
	readonly maxSessions?: number;
	/** The passphrase of the user's key on disk. */
	readonly passphrase?: string;
	/** Who gets in; without it every key does. */
	authenticate?(context: AuthContext, userKey: Buffer): void;
	/** Connects to other ports for its clients, as a jump host does. */
	readonly forwards?: boolean;
};

export async function startSshServer(options: TestServerOptions = {}): Promise<TestServer> {
	const directory = mkdtempSync(join(tmpdir(), 'relight-ssh-'));
	const hostKey = keyPair();
	const userKey = keyPair(options.passphrase);
	const userBlob = Buffer.from(userKey.public.split(' ')[1] ?? '', 'base64');
	writeFileSync(join(directory, 'id'), userKey.private, {mode: 0o600});
	const users: string[] = [];
	const clients = new Set<Connection>();
	const children = new Set<ChildProcess>();
	let open = 0;
	const server: Server = new ssh2.Server({hostKeys: [hostKey.private]}, client => {
		clients.add(client);
		let user = '';
		(client as unknown as {_sock: {setNoDelay(on: boolean): void}})._sock.setNoDelay(true);
		client.on('error', () => {});
		client.on('close', () => clients.delete(client));
		client.on('authentication', context => {
			if (options.authenticate) return options.authenticate(context, userBlob);
			return context.method === 'publickey' ? context.accept() : context.reject(['publickey']);
		});
		client.on('authentication', context => {
			user = context.username;
		});
		client.on('ready', () => users.push(user));
		client.on('tcpip', (accept, reject, {destIP, destPort}) => {
			if (!options.forwards) return reject();
			const socket = connect(destPort, destIP);
			socket.on('error', () => reject());
			socket.on('connect', () => {
				const stream = accept();
				stream.on('error', () => {});
				stream.on('close', () => socket.destroy());
				socket.on('close', () => stream.end());
				stream.pipe(socket).pipe(stream);
			});
		});
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
		users,
		connections: () => clients.size,
		mood: 'well',
		pause: () => {
			for (const socket of sockets()) socket.pause();
		},
		resume: () => {
			for (const socket of sockets()) socket.resume();
		},
		freeze() {
			const listener = (server as unknown as {_srv: EventEmitter})._srv;
			listener.removeAllListeners('connection');
			listener.on('connection', socket => socket.on('error', () => {}));
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
function keyPair(passphrase?: string): {private: string; public: string} {
	for (;;) {
		const pair =
			passphrase === undefined
				? ssh2.utils.generateKeyPairSync('ed25519')
				: ssh2.utils.generateKeyPairSync('ed25519', {passphrase, cipher: 'aes256-ctr', rounds: 1});
		if (!(ssh2.utils.parseKey(pair.private, passphrase) instanceof Error)) return pair;
	}
}

export const OPERATOR = {user: 'tester', home: '/nonexistent', agent: null};
