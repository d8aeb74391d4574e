import type {RouteConfig} from '../target.ts';
import {knownName} from './known-hosts.ts';
import {localTransport} from './local.ts';
import {finish} from './program.ts';
import {SYSTEM_ENVIRONMENT} from './transport.ts';

/** Where and as whom to connect, as `ssh -G` resolves an alias, or as the words say where there is no ssh client. */
export type SshSettings = {
	/** As it was asked for: `gpu`, `ops@gpu:2222`. */
	readonly destination: string;
	readonly host: string;
	/** Name under which the key stands in known_hosts, port included. */
	readonly keyName: string;
	readonly port: number;
	readonly user: string;
	readonly identityFiles: readonly string[];
	/** The first is the one that new keys are kept in. */
	readonly knownHostsFiles: readonly string[];
	readonly hashKnownHosts: boolean;
	readonly agent: string | null;
	/** Destinations on the way there, outermost first. */
	readonly jumps: readonly string[];
	readonly proxyCommand: string | null;
};

/** What the operator's own login gives. Read once in `bin`, passed as a value. */
export type Operator = {readonly user: string; readonly home: string; readonly agent: string | null};

export function splitDestination(destination: string): {user: string | null; host: string; port: number | null} {
	const at = destination.lastIndexOf('@');
	const user = at < 0 ? null : destination.slice(0, at);
	const rest = destination.slice(at + 1);
	const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(rest);
	if (bracketed) return {user, host: bracketed[1] ?? '', port: bracketed[2] ? Number(bracketed[2]) : null};
	const plain = /^([^:]+):(\d+)$/.exec(rest);
	return plain ? {user, host: plain[1] ?? '', port: Number(plain[2])} : {user, host: rest, port: null};
}

/** `text` is what `ssh -G` printed, or '' without a client. What the configuration says explicitly wins. */
export function readSettings(route: RouteConfig, text: string, operator: Operator): SshSettings {
	const {user, host, port} = splitDestination(route.ssh ?? '');
	const values = new Map<string, string[]>();
	for (const line of text.split('\n')) {
		const cut = line.indexOf(' ');
		if (cut < 0) continue;
		const key = line.slice(0, cut).toLowerCase();
		values.set(key, [...(values.get(key) ?? []), line.slice(cut + 1).trim()]);
	}
	const first = (key: string) => values.get(key)?.[0];
	const home = (path: string) => atHome(path, operator);
	const defaults = ['id_ed25519', 'id_ecdsa', 'id_rsa'].map(name => `${operator.home}/.ssh/${name}`);
	const files = values.get('identityfile')?.map(home) ?? defaults;
	const known = (first('userknownhostsfile') ?? '~/.ssh/known_hosts').split(/\s+/).map(home);
	const agent = first('identityagent');
	const hostname = first('hostname') ?? host;
	const alias = first('hostkeyalias');
	const realPort = port ?? Number(first('port') ?? 22);
	const set = (key: string) => (first(key) === 'none' ? null : (first(key) ?? null));
	return {
		destination: route.ssh ?? '',
		host: hostname,
		keyName: alias && alias !== 'none' ? alias : knownName(hostname, realPort),
		port: realPort,
		user: user ?? first('user') ?? operator.user,
		identityFiles: route.identityFile ? [home(route.identityFile)] : files,
		knownHostsFiles: route.knownHostsFile ? [home(route.knownHostsFile)] : [...known, '/etc/ssh/ssh_known_hosts'],
		hashKnownHosts: first('hashknownhosts') === 'yes',
		jumps:
			set('proxyjump')
				?.split(',')
				.map(each => each.trim().replace(/^ssh:\/\//, '')) ?? [],
		proxyCommand: set('proxycommand'),
		agent: agent && !['SSH_AUTH_SOCK', 'none'].includes(agent) ? home(agent) : agent === 'none' ? null : operator.agent,
	};
}

const atHome = (path: string, operator: Operator): string =>
	path.startsWith('~/') ? `${operator.home}${path.slice(1)}` : path;

/** Asks `ssh -G`; a slow home directory is no answer, and the destination stands as written. */
export async function resolveSettings(route: RouteConfig, operator: Operator): Promise<SshSettings> {
	const {host} = splitDestination(route.ssh ?? '');
	const other = route.sshConfigFile ? ['-F', atHome(route.sshConfigFile, operator)] : [];
	const text = await readByChild(['env', `HOME=${operator.home}`, 'ssh', '-G', ...other, '--', host], 2_000);
	return readSettings(route, text?.toString() ?? (await withoutClient(route, host, operator)), operator);
}

/** The same lines from ~/.ssh/config by a parser, where no client is installed. */
async function withoutClient(route: RouteConfig, host: string, operator: Operator): Promise<string> {
	const text = await readByChild(['cat', atHome(route.sshConfigFile ?? '~/.ssh/config', operator)], 2_000);
	if (!text) return '';
	const {default: SSHConfig} = await import('ssh-config');
	const entries = Object.entries(SSHConfig.parse(text.toString()).compute(host));
	return entries.flatMap(([key, value]) => [value].flat().map(each => `${key.toLowerCase()} ${each}`)).join('\n');
}

/** Reads through a child, since the operator's home may be a mount that hangs. null: no answer or not there. */
export async function readByChild(command: readonly string[], limitMs: number): Promise<Buffer | null> {
	const opened = await localTransport(SYSTEM_ENVIRONMENT).open(command, limitMs);
	if (!opened.ok) return null;
	const outcome = await finish(opened.value, null, limitMs);
	return outcome.ok && outcome.value.status === 0 ? outcome.value.bytes : null;
}
