import type {Client, ClientChannel} from 'ssh2';
import {type Command, show} from '../command.ts';
import {bad, good, type Outcome} from '../outcome.ts';
import type {RouteConfig} from '../target.ts';
import {type Desk, openDesk} from './desk.ts';
import {within} from './program.ts';
import {makeSlots} from './slots.ts';
import {type Connection, connect} from './ssh-connect.ts';
import type {Operator} from './ssh-settings.ts';
import type {Channel, ChannelEnd, Environment, Transport} from './transport.ts';

/** sshd's own MaxSessions is 10; an abandoned channel counts until it is seen closed. */
const MAX_CHANNELS = 8;
const KEEPALIVE_MS = 5_000;
const REFUSED_TURNS = 3;
const REFUSED_REST_MS = 100;

export type SshOptions = {readonly desk?: Desk; readonly keepaliveMs?: number};

/** One way in the making: the connection, and the question that it waits for, if any. */
type Attempt = {
	/** The connection, or `asks` as soon as the operator is asked something. One promise for every opener. */
	readonly reached: Promise<Outcome<Connection>>;
	stop(): void;
};

/**
 * One connection per host, opened when first needed and again after it was lost. Every limit starts when the step is asked
 * for: with a frozen sshd `exec` never calls back. What waits for the operator fails at once with `asks`; `asking` resolves
 * when trying again makes sense.
 */
export function sshTransport(
	route: RouteConfig,
	environment: Environment,
	operator: Operator,
	{desk = openDesk(null), keepaliveMs = KEEPALIVE_MS}: SshOptions = {},
): Transport {
	let attempt: Attempt | null = null;
	let live: Connection | null = null;
	let asking: {readonly detail: string; readonly answered: Promise<void>} | null = null;
	let slots = makeSlots(MAX_CHANNELS);

	function forget() {
		live = null;
		attempt = null;
		slots = makeSlots(MAX_CHANNELS);
	}

	function begin(limitMs: number): Attempt {
		const stopper = new AbortController();
		let tell: (detail: string) => void = () => {};
		const asked = new Promise<Outcome<Connection>>(resolve => {
			tell = detail => resolve(bad({kind: 'asks', detail}));
		});
		function waitFor(detail: string, answered: Promise<void>) {
			const mine = {detail, answered};
			asking = mine;
			answered.finally(() => {
				if (asking === mine) asking = null;
			});
			tell(detail);
		}
		const connected = connect({
			route,
			operator,
			desk,
			keepaliveMs,
			limitMs,
			stop: stopper.signal,
			onAsks: waitFor,
			onPrompts: account =>
				waitFor(
					`what ${account} asks for`,
					connected.then(() => {}),
				),
			onClosed() {
				if (attempt === mine) forget();
			},
		}).then(outcome => {
			if (!outcome.ok && attempt === mine) attempt = null;
			if (outcome.ok && attempt === mine) live = outcome.value;
			if (outcome.ok && attempt !== mine) outcome.value.destroy();
			return outcome;
		});
		let reached = Promise.race([connected, asked]);
		// Once it was asked only the connection counts.
		asked.then(() => {
			reached = connected;
		});
		const mine: Attempt = {
			get reached() {
				return reached;
			},
			stop: () => stopper.abort(),
		};
		return mine;
	}

	return {
		label: `ssh ${route.ssh}`,
		environment,
		get asking() {
			return asking?.answered ?? null;
		},
		async open(command: Command, limitMs: number, urgent = false) {
			const startedAt = Date.now();
			if (asking) return bad({kind: 'asks', detail: asking.detail});
			attempt ??= begin(limitMs);
			const connected = await within(attempt.reached, limitMs + 100);
			if (!connected) return bad({kind: 'unreachable', phase: 'handshake', detail: `no SSH session in ${limitMs} ms`});
			if (!connected.ok) return connected;
			const connection = connected.value;
			if (!(await slots.take(startedAt + limitMs - Date.now(), urgent))) {
				return bad({
					kind: 'unreachable',
					phase: 'channel',
					detail: `${MAX_CHANNELS} channels in use, some without an answer`,
				});
			}
			if (connection !== live) {
				slots.give();
				return bad({
					kind: 'unreachable',
					phase: 'keepalive',
					detail: 'the connection was lost while waiting for a channel',
				});
			}
			const mine = slots;
			const opened = await openPatiently(connection.client, command, startedAt + limitMs, () => mine.give());
			const gone = !opened.ok && opened.failure.kind === 'unreachable' && opened.failure.phase === 'keepalive';
			if (gone && connection === live) forget();
			return opened;
		},
		close() {
			const old = {live, attempt};
			forget();
			old.attempt?.stop();
			old.live?.destroy();
		},
	};
}

/** A session that has just ended still counts on the far side until its program was reaped: a refusal is tried again. */
async function openPatiently(
	client: Client,
	command: Command,
	endsAt: number,
	onClosed: () => void,
): Promise<Outcome<Channel>> {
	for (let turn = 0; ; turn++) {
		const leftMs = Math.max(200, endsAt - Date.now());
		const opened = await openChannel(client, command, leftMs, onClosed);
		const full = !opened.ok && opened.failure.kind === 'unreachable' && opened.failure.phase === 'sessions';
		if (full && turn < REFUSED_TURNS && leftMs > 2 * REFUSED_REST_MS) {
			await new Promise(resolve => setTimeout(resolve, REFUSED_REST_MS));
			continue;
		}
		// What was refused holds no slot; everything else gives it back when its channel closes.
		if (full) onClosed();
		return opened;
	}
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
			const full = /open failure/i.test(error.message);
			if (!full || given) onClosed();
			if (given) return;
			const gone = /not connected|no response/i.test(error.message);
			const detail = full ? `the server opens no more sessions (MaxSessions): ${error.message}` : error.message;
			resolve(bad({kind: 'unreachable', phase: full ? 'sessions' : gone ? 'keepalive' : 'channel', detail}));
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
