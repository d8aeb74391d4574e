import {bad, type Outcome} from '../outcome.ts';
import type {Answer, LaneName} from '../probes/probe.ts';
import {type HostStatus, isFull, openFailover} from './failover.ts';
import {type Limits, laneCommand, openLane} from './lane.ts';
import {openLanes} from './lanes.ts';
import type {Sending} from './pour.ts';
import {finish} from './program.ts';
import type {Transport} from './transport.ts';

/**
 * A host and the routes to it, best first. Looks and acts go to the working route. An act is never sent twice: when its
 * route is lost under it, its outcome is unknown and only a look can tell.
 */
export type Host = {
	/** A look. Goes over whichever route works. */
	ask(lane: LaneName, script: string, limits: Limits): Promise<Outcome<Answer>>;
	/** A look at the hypervisor that the host lies behind; `cancelled` where there is none. */
	askOuter(script: string, limits: Limits): Promise<Outcome<Answer>>;
	/** A program with input, for files sent to the host. */
	send(script: string, input: Buffer, limitMs: number, sending?: Sending): Promise<Outcome<Answer>>;
	/** Resolves once a route works or none does, and no question of theirs is open. */
	settle(): Promise<void>;
	/** Tries again, because the operator says so, what is better than the route that works; resolves as `settle` does. */
	reconnect(): Promise<void>;
	readonly status: HostStatus;
	close(): void;
};

export type HostOptions = {
	/** `outer`: the hypervisor, where a route leads into one of its guests. */
	readonly routes: readonly {readonly transport: Transport; readonly outer: Transport | null}[];
	readonly onStatus: (status: HostStatus) => void;
	readonly helloMs?: number;
	readonly headStartMs?: number;
	readonly retryMs?: number;
	readonly clock?: () => number;
};

export function openHost({
	routes,
	onStatus,
	helloMs = 5_000,
	headStartMs = 1_500,
	retryMs = 20_000,
	clock = Date.now,
}: HostOptions): Host {
	let closed = false;
	let acting = 0;
	const [first, ...others] = routes.map(({transport}) => transport);
	if (!first) throw new Error('a host needs a route');
	const lanes = openLanes(clock);
	const isActing = () => acting > 0;
	const transports = [first, ...others] as const;
	const failover = openFailover({transports, lanes, onStatus, isActing, helloMs, headStartMs, retryMs, clock});

	/** Which route said what stands in the status, once, and not in every answer. */
	const nowhere = () => bad({kind: 'unreachable', phase: 'connect', detail: 'no route to the host answers'});

	async function ask(name: LaneName, script: string, limits: Limits, first = true): Promise<Outcome<Answer>> {
		const index = await failover.route();
		if (index === null || closed) return nowhere();
		const transport = transports[index];
		if (!transport) return nowhere();
		let outcome = await lanes.of(name, transport).request(script, limits);
		if (isFull(outcome) && failover.working === index && lanes.share(name))
			outcome = await lanes.of(name, transport).request(script, limits);
		if (outcome.ok || isFull(outcome)) return outcome;
		const {kind} = outcome.failure;
		if (['unreachable', 'lost', 'timeout'].includes(kind)) failover.doubt(index);
		// Where nothing was sent an act may be asked for again, too, once it is known by which way.
		const unsent = kind === 'unreachable' || kind === 'cancelled';
		if (unsent && name === 'act') await failover.found();
		const moved = failover.working !== null && failover.working !== index;
		const again = kind === 'cancelled' || (moved && (unsent || (kind === 'lost' && name !== 'act')));
		return first && again && !closed ? ask(name, script, limits, false) : outcome;
	}

	async function send(
		script: string,
		input: Buffer,
		limitMs: number,
		sending: Sending | undefined,
		first = true,
	): Promise<Outcome<Answer>> {
		const index = await failover.route();
		const transport = index === null ? null : transports[index];
		if (index === null || !transport) return nowhere();
		const limits = {...sending, openMs: Math.min(limitMs, OPEN_MS), limitMs};
		const outcome = await sendTo(transport, script, input, limits);
		if (outcome.ok || outcome.failure.kind !== 'unreachable' || !first || closed) return outcome;
		// Refused before anything was sent: this alone may be sent again.
		if (isFull(outcome))
			return (await lanes.makeRoom(limits.openMs)) ? send(script, input, limitMs, sending, false) : outcome;
		failover.doubt(index);
		await failover.found();
		const {working} = failover;
		return working === null || working === index ? outcome : send(script, input, limitMs, sending, false);
	}

	async function whileActing<T>(act: () => Promise<T>): Promise<T> {
		acting++;
		try {
			return await act();
		} finally {
			acting--;
		}
	}

	return {
		ask: (name, script, limits) =>
			name === 'act' ? whileActing(() => ask(name, script, limits)) : ask(name, script, limits),
		async askOuter(script, limits) {
			const far = routes.find(each => each.outer)?.outer;
			if (!far) return bad({kind: 'cancelled'});
			// A shell for this one question: a lane kept open would take a channel that an act may need.
			const lane = openLane(far, clock);
			const outcome = await lane.request(script, limits);
			lane.close();
			return outcome;
		},
		send: (script, input, limitMs, sending) => whileActing(() => send(script, input, limitMs, sending)),
		settle: failover.settle,
		reconnect: failover.reconnect,
		get status() {
			return failover.status;
		},
		close() {
			closed = true;
			lanes.drop();
			failover.close();
		},
	};
}

/** A file may take many minutes; what opens no channel for it is not waited for as long. */
const OPEN_MS = 30_000;

async function sendTo(
	transport: Transport,
	script: string,
	input: Buffer,
	{openMs, limitMs, ...sending}: Sending & {readonly openMs: number; readonly limitMs: number},
): Promise<Outcome<Answer>> {
	const opened = await transport.open([...laneCommand(transport.environment), '-c', script], openMs, true);
	return opened.ok ? finish(opened.value, input, limitMs, sending) : opened;
}
