import {type ChildProcess, execFileSync, spawn} from 'node:child_process';
import {cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {RouteConfig} from '../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';
import {until} from '../support/until.ts';
import {all, program, root} from './needs.ts';

/** OpenSSH's own server on loopback, with configuration, keys, port and known_hosts of its own. */
export type Sshd = {
	readonly directory: string;
	readonly port: number;
	readonly route: RouteConfig;
	/** The process that listens. */
	readonly pid: number;
	/** The processes of its connections, oldest first. */
	sessions(): readonly number[];
	/** Listens on the same port with another host key. */
	changeHostKey(): Promise<void>;
	close(): Promise<void>;
};

export const canRunSshd = all(root, program('sshd', 'openssh-server'), program('ssh', 'openssh-client'));

export type SshdOptions = {readonly lines?: readonly string[]; readonly passphrase?: string; readonly known?: boolean};

export async function startSshd({lines = [], passphrase = '', known = true}: SshdOptions = {}): Promise<Sshd> {
	const directory = mkdtempSync(join(tmpdir(), 'relight-sshd-'));
	const file = (name: string) => join(directory, name);
	const makeKey = (name: string, phrase = '') => {
		rmSync(file(name), {force: true});
		execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', phrase, '-f', file(name)]);
	};
	makeKey('host');
	makeKey('id', passphrase);
	cpSync(file('id.pub'), file('authorized_keys'));
	const port = await freePort();
	// The first of two settings counts.
	const settings = [
		...lines,
		`ListenAddress 127.0.0.1:${port}`,
		`HostKey ${file('host')}`,
		`AuthorizedKeysFile ${file('authorized_keys')}`,
		'PidFile none',
		'StrictModes no',
		'UsePAM no',
		'PasswordAuthentication no',
		'PermitRootLogin prohibit-password',
	];
	writeFileSync(file('sshd_config'), `${settings.join('\n')}\n`);
	const keep = () => {
		const [type, blob] = readFileSync(file('host.pub'), 'utf8').split(' ');
		writeFileSync(file('known_hosts'), `[127.0.0.1]:${port} ${type} ${blob}\n`);
	};
	if (known) keep();
	else writeFileSync(file('known_hosts'), '');
	let listener = await listen(file('sshd_config'));
	return {
		directory,
		port,
		route: {
			ssh: `root@127.0.0.1:${port}`,
			through: null,
			identityFile: file('id'),
			knownHostsFile: file('known_hosts'),
			environment: SYSTEM_ENVIRONMENT,
		},
		get pid() {
			return listener.pid as number;
		},
		sessions: () => childrenOf(listener.pid as number),
		async changeHostKey() {
			await end(listener);
			makeKey('host');
			listener = await listen(file('sshd_config'));
		},
		async close() {
			await end(listener);
			rmSync(directory, {recursive: true, force: true});
		},
	};
}

async function listen(config: string): Promise<ChildProcess> {
	// Where sshd locks up its unprivileged half; the package makes it at boot.
	mkdirSync('/run/sshd', {recursive: true, mode: 0o755});
	const child = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', config], {stdio: ['ignore', 'ignore', 'pipe']});
	let said = '';
	child.stderr?.on('data', chunk => {
		said += chunk;
	});
	await until(
		() => said.includes('Server listening') || child.exitCode !== null,
		10_000,
		() => `sshd listening, which said ${said},`,
	);
	if (child.exitCode !== null) throw new Error(`sshd ended: ${said}`);
	return child;
}

/** The listener and what it started, frozen or not. */
async function end(listener: ChildProcess): Promise<void> {
	const pid = listener.pid as number;
	for (const each of [pid, ...childrenOf(pid)]) send(each, 'SIGKILL');
	await until(() => listener.exitCode !== null || listener.signalCode !== null);
}

export function send(pid: number, signal: NodeJS.Signals): void {
	try {
		process.kill(pid, signal);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
	}
}

/** By start, oldest first. */
export function childrenOf(parent: number): readonly number[] {
	const found: {pid: number; start: number}[] = [];
	for (const name of readdirSync('/proc').filter(each => /^\d+$/.test(each))) {
		const fields = statOf(Number(name));
		if (fields && Number(fields[1]) === parent) found.push({pid: Number(name), start: Number(fields[19])});
	}
	return found.sort((one, other) => one.start - other.start).map(({pid}) => pid);
}

/** Fields of /proc/PID/stat from the state on; null when the process is gone. */
export function statOf(pid: number): readonly string[] | null {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
		return text.slice(text.lastIndexOf(')') + 2).split(' ');
	} catch {
		return null;
	}
}

function freePort(): Promise<number> {
	const server = createServer();
	return new Promise(resolve =>
		server.listen(0, '127.0.0.1', () => {
			const {port} = server.address() as {port: number};
			server.close(() => resolve(port));
		}),
	);
}
