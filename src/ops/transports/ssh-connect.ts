import type {Duplex} from 'node:stream';
import type {Client} from 'ssh2';
import {bad, type Failure, good, type Outcome} from '../outcome.ts';
import type {RouteConfig} from '../target.ts';
import type {Desk} from './desk.ts';
import {type Hop, resolveHops} from './ssh-hops.ts';
import {login} from './ssh-login.ts';
import type {Operator} from './ssh-settings.ts';

export type Connection = {
	/** The client of the host itself. */
	readonly client: Client;
	/** Ends it with every hop on the way. */
	destroy(): void;
};

export type ConnectOptions = {
	readonly route: RouteConfig;
	readonly operator: Operator;
	readonly desk: Desk;
	readonly keepaliveMs: number;
	/** For the whole way; it stands still while the server's prompts are before the operator. */
	readonly limitMs: number;
	readonly stop: AbortSignal;
	onAsks(detail: string, answered: Promise<void>): void;
	onPrompts(account: string): void;
	onClosed(): void;
};

/** Every hop on the way, each a client through the one before, each host key checked under its own name. */
export async function connect(options: ConnectOptions): Promise<Outcome<Connection>> {
	const {route, operator, desk, keepaliveMs, limitMs, stop, onAsks} = options;
	const clients: Client[] = [];
	const ending = new AbortController();
	let words = 'the configuration of the way is not read';
	let timer: NodeJS.Timeout | undefined;
	let giveUp: (failure: Failure) => void = () => {};
	const given = new Promise<{readonly ok: false; readonly failure: Failure}>(resolve => {
		giveUp = failure => resolve(bad(failure));
	});
	const onTime = <T>(step: Promise<Outcome<T>>) => Promise.race([step, given]);
	const start = () => {
		timer = setTimeout(
			() => giveUp({kind: 'unreachable', phase: 'handshake', detail: `${words} in ${limitMs} ms`}),
			limitMs,
		);
	};
	stop.addEventListener('abort', () => giveUp({kind: 'cancelled'}), {once: true});

	/** Every client, also the one that is being logged in, listens to this. */
	const destroy = () => ending.abort();

	async function walk(): Promise<Outcome<Client>> {
		const hops = await onTime(resolveHops(route, operator));
		if (!hops.ok) return hops;
		for (const [index, hop] of hops.value.entries()) {
			const before = clients.at(-1);
			words = before ? `${hop.destination} does not answer behind the hop before it` : 'port answers, no SSH session';
			const socket = before ? await onTime(forward(before, hop)) : null;
			if (socket && !socket.ok) return inHop(socket, hops.value[index - 1]);
			const client = await onTime(
				login(hop, {
					desk,
					keepaliveMs,
					socket: socket?.value ?? null,
					jumps: hops.value.slice(0, index).map(each => each.destination),
					onAsks,
					onPrompts(open) {
						clearTimeout(timer);
						if (open) options.onPrompts(`${hop.user}@${hop.keyName}`);
						else start();
					},
					stop: ending.signal,
				}),
			);
			if (!client.ok) return index < hops.value.length - 1 ? inHop(client, hop) : client;
			clients.push(client.value);
			// A hop that goes takes those behind it along, and their own silence would be seen only after some keepalives.
			client.value.on('close', () => {
				for (const later of clients.slice(index + 1)) later.destroy();
				if (index === hops.value.length - 1) options.onClosed();
			});
		}
		return good(clients.at(-1) as Client);
	}

	start();
	const reached = await walk();
	clearTimeout(timer);
	if (!reached.ok) {
		destroy();
		return reached;
	}
	return good({client: reached.value, destroy});
}

/** The failure with the name of the hop that it happened on. */
function inHop<T extends {readonly ok: false; readonly failure: Failure}>(failed: T, hop: Hop | undefined): T {
	const {failure} = failed;
	if (!('detail' in failure) || failure.kind === 'asks') return failed;
	return {...failed, failure: {...failure, detail: `hop ${hop?.destination ?? ''}: ${failure.detail}`}};
}

/** A socket to the next hop, from the one before. */
function forward(before: Client, hop: Hop): Promise<Outcome<Duplex>> {
	return new Promise(resolve => {
		const fail = (error: Error) =>
			resolve(
				bad({
					kind: 'unreachable',
					phase: /refused/i.test(error.message) ? 'refused' : 'connect',
					detail: `cannot reach ${hop.host} port ${hop.port} from there: ${error.message.replace(/^\(SSH\) Channel open failure: /, '')}`,
				}),
			);
		try {
			before.forwardOut('127.0.0.1', 0, hop.host, hop.port, (error, stream) => {
				if (error) return fail(error);
				stream.on('error', () => {});
				resolve(good(stream));
			});
		} catch (error) {
			// ssh2 throws at once when the client is closed already.
			fail(error as Error);
		}
	});
}
