import {createServer, type Server, type Socket} from 'node:net';
import type {AuthContext, Connection, ParsedKey} from 'ssh2';
import {type SessionPlace, type Shell, serveSession} from './ssh-session.ts';

/** Ways in which a host can be there and yet not answer; each looks different to a client. */
export type Freeze =
	/** Session requests stay unanswered and open channels fall silent, while keepalives are still answered. */
	| 'no-sessions'
	/** Nothing is read from the sockets any more. */
	| 'paused'
	/** The port accepts connections and never says a word. */
	| 'mute'
	/** Nobody listens. */
	| 'refused';

export type SshRoute = {
	readonly port: number;
	freeze(kind: Freeze): void;
	thaw(): Promise<void>;
	close(): Promise<void>;
};

/** As sshd's MaxSessions: the eleventh is refused. */
const MAX_SESSIONS = 10;

export type SshRouteOptions = {
	readonly hostKey: string;
	readonly user: ParsedKey;
	readonly place: SessionPlace;
};

/** A real SSH server on a free loopback port. exec only, one key, one user; the sockets stay ours so that they can freeze. */
export async function openSshRoute({hostKey, user, place}: SshRouteOptions): Promise<SshRoute> {
	const {default: ssh2} = await import('ssh2');
	const sockets = new Set<Socket>();
	const shells = new Set<Shell>();
	let frozen: Freeze | null = null;

	const ssh = new ssh2.Server({hostKeys: [hostKey], ident: 'OpenSSH_9.2p1 Debian-2+deb12u3'}, client => {
		client.on('error', () => {});
		client.on('authentication', context => authenticate(context, user));
		client.on('ready', () => serve(client));
	});

	function serve(client: Connection): void {
		let open = 0;
		client.on('session', (accept, reject) => {
			if (frozen === 'no-sessions') return;
			if (open >= MAX_SESSIONS) {
				reject();
				return;
			}
			open++;
			serveSession(accept(), place, shells, () => open--);
		});
	}

	const listener = createServer(socket => {
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket));
		socket.on('error', () => {});
		// Nagle against delayed acknowledgement costs 44 ms a request.
		socket.setNoDelay(true);
		if (frozen === 'mute') return;
		ssh.injectSocket(socket);
		if (frozen === 'paused') socket.pause();
	});
	await listen(listener, 0);
	const address = listener.address();
	const port = typeof address === 'object' && address ? address.port : 0;

	const silence = (): void => {
		for (const shell of shells) shell.pause();
	};

	return {
		port,
		freeze(kind) {
			frozen = kind;
			if (kind === 'no-sessions') silence();
			else if (kind === 'refused') {
				listener.close();
				for (const socket of sockets) socket.destroy();
			} else for (const socket of sockets) socket.pause();
		},
		async thaw() {
			const before = frozen;
			frozen = null;
			for (const shell of shells) shell.resume();
			if (before === 'refused') await listen(listener, port);
			// A connection that met a mute listener has no server behind it: let the client come again.
			else if (before === 'mute') for (const socket of sockets) socket.destroy();
			else for (const socket of sockets) socket.resume();
		},
		close: () =>
			new Promise(resolve => {
				for (const shell of shells) shell.end();
				for (const socket of sockets) socket.destroy();
				if (listener.listening) listener.close(() => resolve());
				else resolve();
			}),
	};
}

function listen(listener: Server, port: number): Promise<void> {
	return new Promise((resolve, reject) => {
		listener.once('error', reject);
		listener.listen({port, host: '127.0.0.1'}, () => {
			listener.removeListener('error', reject);
			listener.unref();
			resolve();
		});
	});
}

function authenticate(context: AuthContext, user: ParsedKey): void {
	if (context.method !== 'publickey' || context.username !== 'root') {
		context.reject(['publickey']);
		return;
	}
	const {key, blob, signature, hashAlgo} = context;
	const known = key.data.equals(user.getPublicSSH());
	const signed = !signature || (blob !== undefined && user.verify(blob, signature, hashAlgo));
	if (known && signed) context.accept();
	else context.reject(['publickey']);
}
