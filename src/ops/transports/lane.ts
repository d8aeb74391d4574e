import {randomUUID} from 'node:crypto';
import {type Command, quote} from '../command.ts';
import {bad, type Failure, good, type Outcome} from '../outcome.ts';
import type {Answer} from '../probes/probe.ts';
import {drained, within} from './program.ts';
import type {Channel, ChannelEnd, Environment, Transport} from './transport.ts';

export type Limits = {readonly limitMs: number; readonly capBytes: number};

/**
 * One long-lived `sh` that answers one request at a time. A request is one write: a begin marker on both streams, the
 * script eval'ed in a subshell with no input, an end marker with the exit status. Whatever stands outside the markers (a
 * login file that prints, a late background child) is dropped and counted. A request over its limit or cap costs the
 * shell: it is abandoned, never drained, and the next request gets a new one.
 */
export type Lane = {
	request(script: string, limits: Limits): Promise<Outcome<Answer>>;
	readonly noiseBytes: number;
	/** Abandoned shells that were not yet seen to end. */
	readonly abandoned: number;
	/** A shell is there. */
	readonly open: boolean;
	close(): void;
};

/** The shell of a lane: nothing of the login's environment gets in. */
export function laneCommand(environment: Environment): Command {
	const {path, home, proc, dev, sys, etc} = environment;
	const settings = [`PATH=${path}`, `HOME=${home}`, `PROC=${proc}`, `DEV=${dev}`, `SYS=${sys}`, `ETC=${etc}`];
	return ['env', '-i', ...settings, 'LC_ALL=C', 'SYSTEMD_PAGER=cat', 'SYSTEMD_COLORS=0', '/bin/sh'];
}

export function frame(script: string, mark: string): string {
	return (
		`printf '%s\\n' ${mark}b; printf '%s\\n' ${mark}b >&2\n` +
		`( eval ${quote(script)} ) </dev/null\n` +
		`printf '\\n%s %d\\n' ${mark}e $?; printf '\\n%s\\n' ${mark}e >&2\n`
	);
}

/** Waits between shells after a failure, so that a dead host is not knocked on at every look. */
const REST_MS = [0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/** How long the last words of a shell that has ended are waited for. */
const LAST_WORDS_MS = 300;

export function openLane(transport: Transport, clock: () => number = Date.now, urgent = false): Lane {
	let channel: Channel | null = null;
	let queue: Promise<unknown> = Promise.resolve();
	let noiseBytes = 0;
	let abandoned = 0;
	let failures = 0;
	let restUntil = 0;
	let lastFailure: Failure | null = null;
	let closed = false;
	let asking = false;
	let ending: ((end: ChannelEnd) => void) | null = null;
	let shutNow = () => {};
	/** What is still being opened when the lane is closed is not waited for. */
	const shut = new Promise<null>(resolve => {
		shutNow = () => resolve(null);
	});

	function drop(failure: Failure): {readonly ok: false; readonly failure: Failure} {
		const old = channel;
		channel = null;
		if (old) {
			abandoned++;
			old.ended.then(() => abandoned--);
			old.abandon();
		}
		lastFailure = failure;
		failures = Math.min(failures + 1, REST_MS.length - 1);
		restUntil = clock() + (REST_MS[failures] ?? 0);
		return bad(failure);
	}

	/** A shell that ends while nothing is asked of it is simply replaced at the next request. */
	function adopt(fresh: Channel) {
		channel = fresh;
		for (const stream of [fresh.stdout, fresh.stderr]) {
			stream.on('data', (chunk: Buffer) => {
				if (!asking) noiseBytes += chunk.length;
			});
		}
		// One listener for the shell's whole life: one a request would keep every answer until the shell ends.
		fresh.ended.then(end => {
			if (channel !== fresh) return;
			if (asking) ending?.(end);
			else channel = null;
		});
	}

	async function attempt(script: string, limits: Limits): Promise<Outcome<Answer>> {
		if (closed) return bad({kind: 'cancelled'});
		const fresh = channel === null;
		if (!channel) {
			if (lastFailure && (clock() < restUntil || abandoned > 1)) return bad(lastFailure);
			const opening = transport.open(laneCommand(transport.environment), limits.limitMs, urgent);
			const opened = await Promise.race([within(opening, limits.limitMs + 250), shut]);
			if (closed || !opened) letGo(opening);
			if (closed) return bad({kind: 'cancelled'});
			if (!opened) return drop({kind: 'unreachable', phase: 'channel', detail: `no channel in ${limits.limitMs} ms`});
			if (!opened.ok) return drop(opened.failure);
			adopt(opened.value);
		}
		asking = true;
		const exchanged = await exchange(channel as Channel, script, limits, {
			explain: said => (fresh ? (transport.explain?.(said) ?? null) : null),
			onEnd: listener => {
				ending = listener;
			},
		});
		asking = false;
		noiseBytes += exchanged.noiseBytes;
		if (!exchanged.outcome.ok) return drop(exchanged.outcome.failure);
		failures = 0;
		lastFailure = null;
		return exchanged.outcome;
	}

	return {
		request(script, limits) {
			const turn = queue.then(() => attempt(script, limits));
			queue = turn.catch(() => {});
			return turn;
		},
		get noiseBytes() {
			return noiseBytes;
		},
		get abandoned() {
			return abandoned;
		},
		get open() {
			return channel !== null;
		},
		close() {
			closed = true;
			shutNow();
			channel?.abandon();
			channel = null;
			ending?.({kind: 'lost', detail: 'its route was given up'});
		},
	};
}

/** A channel that opens too late. */
function letGo(opening: Promise<Outcome<Channel>>): void {
	void opening.then(late => late.ok && late.value.abandon());
}

type Exchange = {readonly outcome: Outcome<Answer>; readonly noiseBytes: number};

type Shell = {
	/** Why there never was a shell, by what came in its stead. */
	explain(said: string): Failure | null;
	onEnd(listener: ((end: ChannelEnd) => void) | null): void;
};

function exchange(
	channel: Channel,
	script: string,
	{limitMs, capBytes}: Limits,
	{explain, onEnd}: Shell,
): Promise<Exchange> {
	const mark = `@@${randomUUID()}`;
	const out = collector(mark);
	const err = collector(mark);
	return new Promise(resolve => {
		const timer = setTimeout(
			() => finish(bad({kind: 'timeout', afterMs: limitMs, stdout: out.body().toString()})),
			limitMs,
		);
		function finish(outcome: Outcome<Answer>) {
			clearTimeout(timer);
			channel.stdout.removeListener('data', onOut);
			channel.stderr.removeListener('data', onErr);
			settled = true;
			onEnd(null);
			resolve({outcome, noiseBytes: out.noise() + err.noise()});
		}
		let settled = false;
		function onData(into: Collector, chunk: Buffer) {
			into.push(chunk);
			if (out.size() + err.size() > capBytes) return finish(bad({kind: 'overflow', limitBytes: capBytes}));
			const status = out.status();
			if (status === null || err.status() === null) return;
			const bytes = out.body();
			finish(good({status, stdout: bytes.toString('utf8'), stderr: err.body().toString('utf8'), bytes}));
		}
		const onOut = (chunk: Buffer) => onData(out, chunk);
		const onErr = (chunk: Buffer) => onData(err, chunk);
		channel.stdout.on('data', onOut);
		channel.stderr.on('data', onErr);
		onEnd(async end => {
			// What a program says last may still be in its pipes when it has ended.
			await within(drained(channel), LAST_WORDS_MS);
			if (settled) return;
			const detail =
				end.kind === 'exit'
					? `shell ended with ${end.code}`
					: end.kind === 'signal'
						? `shell killed by ${end.signal}`
						: end.detail;
			const never = out.begun() || err.begun() ? null : explain(`${out.text()}\n${err.text()}`);
			if (never) return finish(bad(never));
			const said = err.body().toString().trim().split('\n').pop() || err.text().replace(`${mark}b`, '').trim();
			finish(bad({kind: 'lost', detail: said ? `${detail}: ${said}` : detail}));
		});
		channel.stdin.write(frame(script, mark));
	});
}

type Collector = {
	push(chunk: Buffer): void;
	/** Exit status once the end marker is in (0 on stderr), null before. */
	status(): number | null;
	/** Whether the begin marker is in: the shell has taken the request. */
	begun(): boolean;
	body(): Buffer;
	text(): string;
	size(): number;
	noise(): number;
};

/** Finds the markers in a stream of chunks without looking at any byte twice. */
function collector(mark: string): Collector {
	const begin = Buffer.from(`${mark}b\n`);
	const end = Buffer.from(`\n${mark}e`);
	let chunks: Buffer[] = [];
	let size = 0;
	/** Last bytes seen, since a marker may come in two chunks. */
	let tail = Buffer.alloc(0);
	let endAt: number | null = null;
	let status: number | null = null;
	let bounds: {from: number; to: number} | null = null;
	const joined = (): Buffer => {
		if (chunks.length !== 1) chunks = [Buffer.concat(chunks)];
		return chunks[0] ?? Buffer.alloc(0);
	};
	return {
		push(chunk) {
			chunks.push(chunk);
			const before = size;
			size += chunk.length;
			if (endAt === null) {
				const seen = tail.length > 0 ? Buffer.concat([tail, chunk]) : chunk;
				const found = seen.indexOf(end);
				if (found < 0) {
					tail = Buffer.from(seen.subarray(Math.max(0, seen.length - end.length + 1)));
					return;
				}
				endAt = before - tail.length + found;
			}
			const all = joined();
			const line = all.indexOf(10, endAt + end.length);
			if (line < 0) return;
			const from = all.indexOf(begin);
			bounds = {from: from < 0 ? endAt : from + begin.length, to: endAt};
			status = Number(
				all
					.subarray(endAt + end.length, line)
					.toString()
					.trim() || 0,
			);
		},
		status: () => status,
		begun: () => joined().includes(begin),
		body: () => {
			const all = joined();
			if (bounds) return all.subarray(bounds.from, bounds.to);
			const from = all.indexOf(begin);
			return from < 0 ? Buffer.alloc(0) : all.subarray(from + begin.length);
		},
		text: () => joined().toString('utf8'),
		size: () => size,
		noise: () => {
			if (!bounds) return 0;
			const lineEnd = joined().indexOf(10, bounds.to + end.length) + 1;
			return bounds.from - begin.length + (size - lineEnd);
		},
	};
}
