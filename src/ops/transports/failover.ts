import {bad, describe, type Failure, good, type Outcome} from '../outcome.ts';
import type {Answer} from '../probes/probe.ts';
import {firstToAnswer} from './first-to-answer.ts';
import {openLane} from './lane.ts';
import type {Lanes} from './lanes.ts';
import type {Transport} from './transport.ts';

/**
 * Which of the routes to a host is taken, best first. When the one that works stops answering the next is tried, and a
 * better one is taken back once it has answered for a while.
 */
export type Failover = {
	/** The route that works, found first where none does yet; null when none answers. */
	route(): Promise<number | null>;
	/** null while none is known to work. */
	readonly working: number | null;
	/** Resolves once the search that is under way has ended. */
	found(): Promise<unknown>;
	/** After a failure that may be the route's fault: does it still say hello? If not, another is looked for. */
	doubt(index: number): void;
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

export type FailoverOptions = {
	/** Best first, at least one. */
	readonly transports: readonly [Transport, ...Transport[]];
	readonly lanes: Lanes;
	readonly onStatus: (status: HostStatus) => void;
	/** Acts or files are under way: a better route waits for their end, for what they do must not be cut off. */
	isActing(): boolean;
	/** How long one route may take to say hello. */
	readonly helloMs: number;
	/** How long a route is waited for before the next is tried beside it. */
	readonly headStartMs: number;
	/** How often a better route is knocked on. */
	readonly retryMs: number;
	readonly clock: () => number;
};

const HELLO = 'echo relight';
/** Good answers in a row that take a better route back. */
const RETURN_AFTER = 3;

export function openFailover(options: FailoverOptions): Failover {
	const {transports, lanes, onStatus, isActing, helloMs, headStartMs, retryMs, clock} = options;
	const [first] = transports;
	let closed = false;
	let working: number | null = null;
	let finding: Promise<number | null> | null = null;
	let restUntil = 0;
	/** Routes whose question is open, and what goes on once one is answered. */
	const asked = new Set<number>();
	const retries = new Set<Promise<void>>();
	/** Routes that are being greeted. */
	const knocks = new Set<Promise<unknown>>();
	let status: HostStatus = {state: 'connecting', label: first.label, since: clock(), passedOver: []};

	function tell(next: Partial<HostStatus>) {
		const changed = next.state !== undefined && (next.state !== status.state || next.label !== status.label);
		status = {...status, ...next, since: changed ? clock() : status.since};
		onStatus(status);
	}

	function passOver(index: number, failure: Failure) {
		const label = transports[index]?.label ?? '';
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
		const transport = transports[index];
		if (!transport) return bad({kind: 'cancelled'});
		const lane = openLane(transport, clock);
		const outcome = await lane.request(HELLO, {limitMs: helloMs, capBytes: 4_096});
		lane.close();
		// Refused because ours are open: the server is well.
		if (isFull(outcome) && index === working && lanes.someOpen) return NOTHING_SAID;
		if (!outcome.ok || outcome.value.stdout.trim() === 'relight') return outcome;
		return bad({kind: 'unreachable', phase: 'start', detail: 'the shell there does not answer as one'});
	}

	async function find(): Promise<number | null> {
		if (working === null && status.state !== 'down') tell({state: 'connecting'});
		const count = transports.length;
		const found = await firstToAnswer({count, headStartMs, knock: hello, over: () => closed, failed: letGo});
		if (closed) return null;
		if (found !== null) {
			take(found);
			return found;
		}
		working = null;
		restUntil = clock() + 2_000;
		tell({state: 'down', label: first.label});
		return null;
	}

	/** A route that failed starts from nothing next time, unless it stands and waits for the operator. */
	function letGo(index: number, failure: Failure) {
		// A late failure of one that has been taken back since.
		if (index === working) return;
		const transport = transports[index];
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
		if (closed || working === null || working <= index || isActing()) return;
		if (outcome.ok) take(index);
		else letGo(index, outcome.failure);
	}

	function take(index: number) {
		if (working !== index) lanes.drop();
		working = index;
		const label = transports[index]?.label ?? '';
		tell({
			state: 'up',
			label,
			passedOver: status.passedOver.filter(each => transports.findIndex(({label}) => label === each.label) < index),
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

	/** Several good answers in a row, so that a flapping link does not flap us. */
	let goodAnswers = 0;
	const returning = setInterval(async () => {
		if (closed || working === null || working === 0 || finding) return;
		const outcome = await hello(0);
		if (closed || working === null || working === 0) return;
		if (!outcome.ok) {
			goodAnswers = 0;
			return letGo(0, outcome.failure);
		}
		if (++goodAnswers >= RETURN_AFTER && !isActing()) {
			goodAnswers = 0;
			take(0);
		}
	}, retryMs);
	returning.unref();

	async function settle(): Promise<void> {
		await route();
		while (retries.size > 0 && !closed) await Promise.all(retries);
	}

	return {
		route,
		get working() {
			return working;
		},
		found: async () => finding,
		doubt,
		settle,
		async reconnect() {
			await finding;
			// A login under way may be past what is now asked again.
			await Promise.all(knocks);
			restUntil = 0;
			await Promise.all(transports.slice(0, working ?? 0).map((_, index) => tryAgain(index)));
			await settle();
		},
		get status() {
			return status;
		},
		close() {
			closed = true;
			clearInterval(returning);
			for (const transport of transports) transport.close();
		},
	};
}

/** The server opens no more sessions for this login: ours fill it. */
export const isFull = (outcome: Outcome<unknown>): boolean =>
	!outcome.ok && outcome.failure.kind === 'unreachable' && outcome.failure.phase === 'sessions';

const NOTHING_SAID = good({status: 0, stdout: '', stderr: '', bytes: Buffer.alloc(0)});
