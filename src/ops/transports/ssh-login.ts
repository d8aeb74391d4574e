import type {Duplex} from 'node:stream';
import type {Client} from 'ssh2';
import {bad, type Failure, good, type Outcome, type ReachPhase} from '../outcome.ts';
import {agentTrouble} from './agent.ts';
import type {Desk} from './desk.ts';
import {fingerprint, type HostKeyVerdict, judgeHostKey, knownKeyTypes} from './known-hosts.ts';
import {headlessWords} from './known-hosts-words.ts';
import {topicOf} from './question.ts';
import {authMethods} from './ssh-auth.ts';
import type {Hop} from './ssh-hops.ts';

export type LoginOptions = {
	readonly desk: Desk;
	readonly keepaliveMs: number;
	/** The hop before this one: its socket leads here. */
	readonly socket: Duplex | null;
	/** Destinations before this one, for the words of what the operator can do by hand. */
	readonly jumps: readonly string[];
	/** A question was brought to the desk; `answered` resolves when going on makes sense. */
	onAsks(detail: string, answered: Promise<void>): void;
	/** Prompts of the server are before the operator, and this connection stands until they are answered. */
	onPrompts(open: boolean): void;
	readonly stop: AbortSignal;
};

const KEEPALIVE_MISSES = 3;

/**
 * One client, logged in. The host key is checked against known_hosts before anything is sent; an unknown one goes to the
 * desk. No limit of its own: `stop` ends it. Failures: unreachable, denied, asks.
 */
export async function login(hop: Hop, options: LoginOptions): Promise<Outcome<Client>> {
	const {Client: SshClient} = await import('ssh2').then(module => module.default ?? module);
	const agentNote = hop.agent ? await agentTrouble(hop.agent) : null;
	const client = new SshClient();
	return new Promise(resolve => {
		let trouble: Failure | null = null;
		let lastError: SshError | null = null;
		const give = (failure: Failure) => resolve(bad(trouble ?? failure));
		options.stop.addEventListener('abort', () => client.destroy(), {once: true});
		client.on('ready', () => {
			client.setNoDelay(true);
			resolve(good(client));
		});
		client.on('error', (error: SshError) => {
			// A stale SSH_AUTH_SOCK: told as an error, and the other methods go on.
			if (error.level === 'agent') return;
			lastError ??= error;
			give(readError(error));
		});
		client.on('close', () =>
			give(
				lastError ? readError(lastError) : {kind: 'unreachable', phase: 'handshake', detail: 'closed by the other end'},
			),
		);
		const types = knownKeyTypes(hop.knownHosts, hop.keyName);
		client.connect({
			...(options.socket ? {sock: options.socket} : {host: hop.host, port: hop.port}),
			username: hop.user,
			authHandler: authMethods(hop, {
				...options,
				agentNote,
				onTrouble(failure) {
					trouble = failure;
				},
			}) as never,
			readyTimeout: 0,
			keepaliveInterval: options.keepaliveMs,
			keepaliveCountMax: KEEPALIVE_MISSES,
			...(types.length > 0 && {
				algorithms: {serverHostKey: {prepend: hostKeyAlgorithms(types), append: [], remove: []} as never},
			}),
			hostVerifier: (key: Buffer) => {
				const verdict = judgeHostKey(hop.knownHosts, hop.keyName, key);
				if (verdict.kind === 'known') return true;
				trouble = hostKeyTrouble(hop, key, verdict, options);
				return false;
			},
		});
	});
}

function hostKeyTrouble(hop: Hop, key: Buffer, verdict: HostKeyVerdict, {desk, jumps, onAsks}: LoginOptions): Failure {
	const name = hop.keyName;
	if (verdict.kind === 'changed' || verdict.kind === 'revoked') {
		const lines = verdict.by.map(({file, line, label}) => `${label} (${file}:${line})`).join(', ');
		const detail =
			verdict.kind === 'revoked'
				? `host key of ${name} is revoked: ${lines}; nothing was sent`
				: `host key of ${name} is changed: now ${fingerprint(key)}, known is ${lines}; nothing was sent. If that host was really rebuilt, compare the new key there and take the old line out`;
		return {kind: 'denied', detail};
	}
	const file = hop.knownHostsFiles[0];
	const unknown = `host key of ${name} is not in known_hosts (${fingerprint(key)})`;
	const decided = desk.hostKeyTrouble(name, key);
	if (decided !== null) return {kind: 'denied', detail: `${unknown}: ${decided}`};
	if (!desk.asker?.decidesHostKeys || !file)
		return {kind: 'denied', detail: `${unknown}: ${headlessWords(hop, key, jumps)}`};
	const detail = topicOf({kind: 'host-key', name, label: fingerprint(key), file});
	onAsks(detail, desk.decideHostKey(name, key, file, hop.hashKnownHosts));
	return {kind: 'asks', detail};
}

/** Known key types as signature algorithms: an RSA key is offered under its SHA-2 names. */
function hostKeyAlgorithms(types: readonly string[]): string[] {
	const spoken = /^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521))$/;
	return types.flatMap(type =>
		type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : spoken.test(type) ? [type] : [],
	);
}

type SshError = Error & {level?: string; code?: string};

/** What an error says about how far the way to the host is open. */
export function readError(error: SshError): Failure {
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
