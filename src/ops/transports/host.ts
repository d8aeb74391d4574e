import {bad, describe, type Failure, good, type Outcome} from '../outcome.ts';
import type {Answer, LaneName} from '../probes/probe.ts';
import {firstToAnswer} from './first-to-answer.ts';
import {type Limits, laneCommand, openLane} from './lane.ts';
import {openLanes} from './lanes.ts';
import type {Sending} from './pour.ts';
import {finish} from './program.ts';
import type {Transport} from './transport.ts';

/**
 * A host and the routes to it, best first. Looks and acts go to the working route; when that stops answering the next is
 * tried, and a better one is taken back once it has answered for a while. An act is never sent twice: when its route is
 * lost under it, its outcome is unknown and only a look can tell.
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

export type HostStatus = {
	readonly state: 'connecting' | 'up' | 'down';
	readonly label: string;
	readonly since: number;
	readonly passedOver: readonly {readonly label: string; readonly reason: string; readonly at: number}[];
};

export type HostOptions = {
	/** `outer`: the hypervisor, where a route leads into one of its guests. */
	readonly routes: readonly {readonly transport: Transport; readonly outer: Transport | null}[];
	readonly onStatus: (status: HostStatus) => void;
	/** How long one route may take to say hello. */
	readonly helloMs?: number;
	/** How long a route is waited for before the next is tried beside it. */
	readonly headStartMs?: number;
	/** How often a better route is knocked on, and how many good answers take it back. */
	readonly retryMs?: number;
	readonly clock?: () => number;
};

const HELLO = 'echo relight';
const RETURN_AFTER = 3;

export function openHost({
	routes,
	onStatus,
	helloMs = 5_000,
	headStartMs = 1_500,
	retryMs = 20_000,
	clock = Date.now,
}: HostOptions): Host {
	let closed = false;
	let working: number | null = null;
	let finding: Promise<number | null> | null = null;
	let restUntil = 0;
	/** Acts and files under way: a better route waits for their end, for what they do must not be cut off. */
	let acting = 0;
	const lanes = openLanes(clock);
	/** Routes whose question is open, and what goes on once one is answered. */
	const asked = new Set<number>();
	const retries = new Set<Promise<void>>();
	/** Routes that are being greeted. */
	const knocks = new Set<Promise<unknown>>();
	const first = routes[0];
	if (!first) throw new Error('a host needs a route');
	let status: HostStatus = {state: 'connecting', label: first.transport.label, since: clock(), passedOver: []};

	function tell(next: Partial<HostStatus>) {
		const changed = next.state !== undefined && (next.state !== status.state || next.label !== status.label);
		status = {...status, ...next, since: changed ? clock() : status.since};
		onStatus(status);
	}

	function passOver(index: number, failure: Failure) {
		const label = routes[index]?.transport.label ?? '';
		const entry = {label, reason: describe(failure), at: clock()};
		tell({passedOver: [...status.passedOver.filter(each => each.label !== label), entry]});
	}

	/** One question on a shell of its own: the cheapest proof that a route works from end to end. */
	function hello(index: number): Promise<Outcome<Answer>> {
		const said = greet(index).finally(() => knocks.delete(said));
		knocks.add(said);
		return said;
	}

	async function greet(index: number): Promise<Outcome<Answer>> {
		const route = routes[index];
		if (!route) return bad({kind: 'cancelled'});
		const lane = openLane(route.transport, clock);
		const outcome = await lane.request(HELLO, {limitMs: helloMs, capBytes: 4_096});
		lane.close();
		// Refused because ours are open: the server is well.
		if (isFull(outcome) && index === working && lanes.someOpen) return NOTHING_SAID;
		if (!outcome.ok || outcome.value.stdout.trim() === 'relight') return outcome;
		return bad({kind: 'unreachable', phase: 'start', detail: 'the shell there does not answer as one'});
	}

	async function find(): Promise<number | null> {
		if (working === null && status.state !== 'down') tell({state: 'connecting'});
		const count = routes.length;
		const found = await firstToAnswer({count, headStartMs, knock: hello, over: () => closed, failed: letGo});
		if (closed) return null;
		if (found !== null) {
			take(found);
			return found;
		}
		working = null;
		restUntil = clock() + 2_000;
		tell({state: 'down', label: first?.transport.label ?? ''});
		return null;
	}

	/** A route that failed starts from nothing next time, unless it stands and waits for the operator. */
	function letGo(index: number, failure: Failure) {
		// A late failure of one that has been taken back since.
		if (index === working) return;
		const transport = routes[index]?.transport;
		passOver(index, failure);
		if (failure.kind !== 'asks') return transport?.close();
		if (asked.has(index)) return;
		asked.add(index);
		// It may have been answered already.
		const retry = Promise.resolve(transport?.asking).then(async () => {
			asked.delete(index);
			await tryAgain(index);
			retries.delete(retry);
		});
		retries.add(retry);
	}

	/** What the operator has just answered for is wanted: it is taken at once, also from a worse route that works. */
	async function tryAgain(index: number): Promise<void> {
		await finding;
		restUntil = 0;
		if (closed || (working !== null && working <= index)) return;
		if (working === null) return void (await route());
		const outcome = await hello(index);
		if (closed || working === null || working <= index || acting > 0) return;
		if (outcome.ok) take(index);
		else letGo(index, outcome.failure);
	}

	function take(index: number) {
		if (working !== index) lanes.drop();
		working = index;
		const label = routes[index]?.transport.label ?? '';
		tell({
			state: 'up',
			label,
			passedOver: status.passedOver.filter(
				each => routes.findIndex(route => route.transport.label === each.label) < index,
			),
		});
	}

	async function route(): Promise<number | null> {
		if (working !== null) return working;
		if (clock() < restUntil) return null;
		finding ??= find().finally(() => {
			finding = null;
		});
		return finding;
	}

	/** After a failure that may be the route's fault: does it still say hello? If not, look for another. */
	function doubt(index: number) {
		if (working !== index || finding) return;
		finding = (async () => {
			const outcome = await hello(index);
			if (closed || outcome.ok || working !== index) return working;
			working = null;
			lanes.drop();
			letGo(index, outcome.failure);
			return find();
		})().finally(() => {
			finding = null;
		});
	}

	/** A better route is taken back only after several good answers in a row, so that a flapping link does not flap us. */
	let goodAnswers = 0;
	const returning = setInterval(async () => {
		if (closed || working === null || working === 0 || finding) return;
		const outcome = await hello(0);
		if (closed || working === null || working === 0) return;
		if (!outcome.ok) {
			goodAnswers = 0;
			return letGo(0, outcome.failure);
		}
		if (++goodAnswers >= RETURN_AFTER && acting === 0) {
			goodAnswers = 0;
			take(0);
		}
	}, retryMs);
	returning.unref();

	async function settle(): Promise<void> {
		await route();
		while (retries.size > 0 && !closed) await Promise.all(retries);
	}

	/** Which route said what stands in the status, once, and not in every answer. */
	const nowhere = () => bad({kind: 'unreachable', phase: 'connect', detail: 'no route to the host answers'});

	async function ask(name: LaneName, script: string, limits: Limits, first = true): Promise<Outcome<Answer>> {
		const index = await route();
		if (index === null || closed) return nowhere();
		const transport = routes[index]?.transport;
		if (!transport) return nowhere();
		let outcome = await lanes.of(name, transport).request(script, limits);
		if (isFull(outcome) && working === index && lanes.share(name))
			outcome = await lanes.of(name, transport).request(script, limits);
		if (outcome.ok || isFull(outcome)) return outcome;
		const {kind} = outcome.failure;
		if (['unreachable', 'lost', 'timeout'].includes(kind)) doubt(index);
		// Where nothing was sent an act may be asked for again, too, once it is known by which way.
		const unsent = kind === 'unreachable' || kind === 'cancelled';
		if (unsent && name === 'act') await finding;
		const moved = working !== null && working !== index;
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
		const index = await route();
		const transport = index === null ? null : routes[index]?.transport;
		if (index === null || !transport) return nowhere();
		const limits = {...sending, openMs: Math.min(limitMs, OPEN_MS), limitMs};
		const outcome = await sendTo(transport, script, input, limits);
		if (outcome.ok || outcome.failure.kind !== 'unreachable' || !first || closed) return outcome;
		// Refused before anything was sent: this alone may be sent again.
		if (isFull(outcome))
			return (await lanes.makeRoom(limits.openMs)) ? send(script, input, limitMs, sending, false) : outcome;
		doubt(index);
		await finding;
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
		settle,
		async reconnect() {
			await finding;
			// A login under way may be past what is now asked again.
			await Promise.all(knocks);
			restUntil = 0;
			await Promise.all(routes.slice(0, working ?? 0).map((_, index) => tryAgain(index)));
			await settle();
		},
		get status() {
			return status;
		},
		close() {
			closed = true;
			clearInterval(returning);
			lanes.drop();
			for (const {transport} of routes) transport.close();
		},
	};
}

const isFull = (outcome: Outcome<unknown>): boolean =>
	!outcome.ok && outcome.failure.kind === 'unreachable' && outcome.failure.phase === 'sessions';

const NOTHING_SAID = good({status: 0, stdout: '', stderr: '', bytes: Buffer.alloc(0)});

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
