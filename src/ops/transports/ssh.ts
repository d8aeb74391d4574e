import type {Client, ClientChannel} from 'ssh2';
import {type Command, show} from '../command.ts';
import {bad, type Failure, good, type Outcome, type ReachPhase} from '../outcome.ts';
import type {RouteConfig} from '../target.ts';
import {fingerprint, judgeHostKey, knownKeyTypes} from './known-hosts.ts';
import {makeSlots} from './slots.ts';
import {type Operator, readByChild, resolveSettings, type SshSettings} from './ssh-settings.ts';
import type {Channel, ChannelEnd, Environment, Transport} from './transport.ts';

/** sshd's own MaxSessions is 10; an abandoned channel counts until it is seen closed. */
const MAX_CHANNELS = 8;
const KEEPALIVE_MS = 5_000;
const KEEPALIVE_MISSES = 3;

/**
 * One connection per host, opened when first needed and again after it was lost. Every limit starts when the step is asked
 * for: with a frozen sshd `exec` never calls back. The host key is checked against known_hosts before anything is sent.
 */
export function sshTransport(
	route: RouteConfig,
	environment: Environment,
	operator: Operator,
	keepaliveMs = KEEPALIVE_MS,
): Transport {
	const label = `ssh ${route.ssh}`;
	let connection: Promise<Outcome<Client>> | null = null;
	let live: Client | null = null;
	let slots = makeSlots(MAX_CHANNELS);

	function forget(client: Client | null) {
		if (client && client !== live) return;
		live = null;
		connection = null;
		slots = makeSlots(MAX_CHANNELS);
	}

	async function connect(limitMs: number): Promise<Outcome<Client>> {
		const settings = await resolveSettings(route, operator);
		const knownHosts = await readAll(settings.knownHostsFiles);
		const keys = await readKeys(settings.identityFiles);
		const {Client: SshClient} = await import('ssh2').then(module => module.default ?? module);
		const client = new SshClient();
		return new Promise(resolve => {
			let hostKeyTrouble: Failure | null = null;
			let lastError: (Error & {level?: string; code?: string}) | null = null;
			const timer = setTimeout(() => {
				resolve(
					bad({kind: 'unreachable', phase: 'handshake', detail: `port answers, no SSH session in ${limitMs} ms`}),
				);
				client.destroy();
			}, limitMs);
			client.on('ready', () => {
				clearTimeout(timer);
				client.setNoDelay(true);
				live = client;
				resolve(good(client));
			});
			client.on('error', (error: Error & {level?: string; code?: string}) => {
				lastError ??= error;
				resolve(bad(hostKeyTrouble ?? readError(error)));
			});
			client.on('close', () => {
				clearTimeout(timer);
				resolve(
					bad(
						hostKeyTrouble ??
							(lastError
								? readError(lastError)
								: {kind: 'unreachable', phase: 'handshake', detail: 'closed by the other end'}),
					),
				);
				forget(client);
			});
			const types = knownKeyTypes(knownHosts, settings.keyName, settings.port);
			client.connect({
				host: settings.host,
				port: settings.port,
				username: settings.user,
				authHandler: authMethods(settings, keys) as never,
				readyTimeout: limitMs,
				keepaliveInterval: keepaliveMs,
				keepaliveCountMax: KEEPALIVE_MISSES,
				...(types.length > 0 && {
					algorithms: {serverHostKey: {prepend: hostKeyAlgorithms(types), append: [], remove: []} as never},
				}),
				hostVerifier: (key: Buffer) => {
					const verdict = judgeHostKey(knownHosts, settings.keyName, settings.port, key);
					if (verdict === 'known') return true;
					hostKeyTrouble = {kind: 'denied', detail: hostKeyWords(verdict, settings, key)};
					return false;
				},
			});
		});
	}

	return {
		label,
		environment,
		async open(command: Command, limitMs: number, urgent = false) {
			const startedAt = Date.now();
			connection ??= connect(limitMs).then(outcome => {
				if (!outcome.ok) connection = null;
				return outcome;
			});
			const connected = await connection;
			if (!connected.ok) return connected;
			const client = connected.value;
			if (!(await slots.take(startedAt + limitMs - Date.now(), urgent))) {
				return bad({
					kind: 'unreachable',
					phase: 'channel',
					detail: `${MAX_CHANNELS} channels in use, some without an answer`,
				});
			}
			if (client !== live) {
				slots.give();
				return bad({
					kind: 'unreachable',
					phase: 'keepalive',
					detail: 'the connection was lost while waiting for a channel',
				});
			}
			const leftMs = Math.max(200, startedAt + limitMs - Date.now());
			const mine = slots;
			const opened = await openChannel(client, command, leftMs, () => mine.give());
			if (!opened.ok && opened.failure.kind === 'unreachable' && opened.failure.phase === 'keepalive') forget(client);
			return opened;
		},
		close() {
			const client = live;
			forget(client);
			client?.destroy();
		},
	};
}

function openChannel(
	client: Client,
	command: Command,
	limitMs: number,
	onClosed: () => void,
): Promise<Outcome<Channel>> {
	return new Promise(resolve => {
		let given = false;
		const timer = setTimeout(() => {
			given = true;
			resolve(
				bad({
					kind: 'unreachable',
					phase: 'channel',
					detail: 'connected, but it opens no session: sshd is frozen',
				}),
			);
		}, limitMs);
		const fail = (error: Error) => {
			clearTimeout(timer);
			onClosed();
			const gone = /not connected|no response/i.test(error.message);
			if (!given) resolve(bad({kind: 'unreachable', phase: gone ? 'keepalive' : 'channel', detail: error.message}));
		};
		try {
			client.exec(`exec ${show(command)}`, (error, stream) => {
				if (error) return fail(error);
				clearTimeout(timer);
				const channel = toChannel(stream, onClosed);
				if (given) return channel.abandon();
				resolve(good(channel));
			});
		} catch (error) {
			// ssh2 throws at once when the client is closed already.
			fail(error as Error);
		}
	});
}

/** A session's events as a channel: an end without an exit message is `lost`, whatever else was said. */
export function toChannel(stream: ClientChannel, onClosed: () => void): Channel {
	const ended = new Promise<ChannelEnd>(resolve => {
		let end: ChannelEnd | null = null;
		stream.on('exit', (code: number | null, signal?: string) => {
			end = code === null ? {kind: 'signal', signal: signal ?? 'unknown'} : {kind: 'exit', code};
		});
		stream.on('close', () => {
			onClosed();
			resolve(end ?? {kind: 'lost', detail: 'no exit status came'});
		});
	});
	stream.on('error', () => {});
	stream.stderr.on('error', () => {});
	return {
		stdin: stream,
		stdout: stream,
		stderr: stream.stderr,
		ended,
		abandon() {
			// Both streams go on being drained: a full window would keep the channel open for ever.
			stream.resume();
			stream.stderr.resume();
			stream.close();
		},
	};
}

/** What an error says about how far the way to the host is open. */
export function readError(error: Error & {level?: string; code?: string}): Failure {
	const detail = error.message;
	const unreachable = (phase: ReachPhase): Failure => ({kind: 'unreachable', phase, detail});
	if (error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') return unreachable('name');
	if (error.code === 'ECONNREFUSED') return unreachable('refused');
	if (error.level === 'client-authentication')
		return {kind: 'denied', detail: `${detail}: no offered key was accepted`};
	if (error.level === 'client-timeout') {
		return /keepalive/i.test(detail)
			? unreachable('keepalive')
			: {kind: 'unreachable', phase: 'handshake', detail: 'port open but no SSH banner: guest frozen or overloaded'};
	}
	if (error.level === 'client-socket') return unreachable('connect');
	return unreachable('handshake');
}

function hostKeyWords(verdict: 'changed' | 'revoked' | 'unknown', settings: SshSettings, key: Buffer): string {
	const where = `${settings.keyName} port ${settings.port}`;
	if (verdict === 'unknown') {
		return `host key of ${where} is not in known_hosts (${fingerprint(key)}); compare it, then connect once with ssh to keep it`;
	}
	return `host key of ${where} is ${verdict} (now ${fingerprint(key)}); known_hosts says otherwise, nothing was sent`;
}

/** Known key types as signature algorithms: an RSA key is offered under its SHA-2 names. */
function hostKeyAlgorithms(types: readonly string[]): string[] {
	const spoken = /^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521))$/;
	return types.flatMap(type =>
		type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : spoken.test(type) ? [type] : [],
	);
}

function authMethods(settings: SshSettings, keys: readonly Buffer[]): object[] {
	const username = settings.user;
	const agent = settings.agent ? [{type: 'agent', username, agent: settings.agent}] : [];
	return [...agent, ...keys.map(key => ({type: 'publickey', username, key}))];
}

async function readAll(files: readonly string[]): Promise<string> {
	const texts = await Promise.all(files.map(file => readByChild(['cat', file], 2_000)));
	return texts.map(text => text?.toString() ?? '').join('\n');
}

/** Encrypted keys are left to the agent: without a passphrase ssh2 throws on them at once. */
async function readKeys(files: readonly string[]): Promise<Buffer[]> {
	const {utils} = await import('ssh2').then(module => module.default ?? module);
	const texts = await Promise.all(files.map(file => readByChild(['cat', file], 2_000)));
	return texts.filter((text): text is Buffer => text !== null && !(utils.parseKey(text) instanceof Error));
}
