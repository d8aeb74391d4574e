import {createServer} from 'node:net';
import type {ParsedKey} from 'ssh2';
import {write} from './build-host.ts';
import {type BoxPaths, boxPath} from './paths.ts';
import type {Received} from './received.ts';
import {openSshRoute, type SshRoute} from './ssh-route.ts';

/** Two servers with host keys of their own, one user key for both, everything a client needs below operator/. */
export async function openRoutes(
	paths: BoxPaths,
	leash: number,
	received: Received,
): Promise<{direct: SshRoute; hypervisor: SshRoute}> {
	const {default: ssh2} = await import('ssh2');
	const userKeys = keyPair(ssh2);
	const keys = [keyPair(ssh2), keyPair(ssh2)] as const;
	const {user} = userKeys;
	const env = {PATH: boxPath(paths), HOME: paths.home, LANG: 'C.UTF-8', SHELL: '/bin/sh', USER: 'root'};
	const place = {env, cwd: paths.home, leash, received};
	const direct = await openSshRoute({hostKey: keys[0].private, user, place});
	const hypervisor = await openSshRoute({hostKey: keys[1].private, user, place});
	write(paths.identity, userKeys.private, 0o600);
	write(`${paths.identity}.pub`, `${userKeys.public} operator\n`);
	const line = (port: number, key: string): string => `[127.0.0.1]:${port} ${key.split(' ').slice(0, 2).join(' ')}\n`;
	write(paths.knownHosts, line(direct.port, keys[0].public) + line(hypervisor.port, keys[1].public));
	return {direct, hypervisor};
}

/** ssh2 1.17 makes one pair in some four hundred that it cannot read itself: those are thrown away. */
function keyPair({utils}: typeof import('ssh2')): {private: string; public: string; user: ParsedKey} {
	for (;;) {
		const made = utils.generateKeyPairSync('ed25519');
		const user = utils.parseKey(made.public);
		if (!(user instanceof Error) && !(utils.parseKey(made.private) instanceof Error)) return {...made, user};
	}
}

/** A port nobody listens on now; given back at once, for the stand-in server to take. */
export function freePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const probe = createServer();
		probe.once('error', reject);
		probe.listen({port: 0, host: '127.0.0.1'}, () => {
			const address = probe.address();
			probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
		});
	});
}
