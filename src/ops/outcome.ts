/**
 * Expected trouble is a value. `ok: true` carries what was asked for; `ok: false` carries one of a closed set of
 * facts about why there is no answer. Only bugs throw.
 */
export type Failure =
	/** No way to the host. `phase` says how far the way was: refused and "open but silent" are different hosts. */
	| {readonly kind: 'unreachable'; readonly phase: ReachPhase; readonly detail: string}
	/** The far side refused us for a reason that repeating does not mend: unknown or changed host key, wrong key. */
	| {readonly kind: 'denied'; readonly detail: string}
	/** The way there waits for something that only the operator knows; when it is answered the way is tried anew. */
	| {readonly kind: 'asks'; readonly detail: string}
	| {readonly kind: 'timeout'; readonly afterMs: number; readonly stdout?: string}
	| {readonly kind: 'exit'; readonly code: number; readonly stdout: string; readonly stderr: string}
	| {readonly kind: 'killed'; readonly signal: string}
	/** The connection ended before the exit status came: what the command did is UNKNOWN. */
	| {readonly kind: 'lost'; readonly detail: string}
	| {readonly kind: 'overflow'; readonly limitBytes: number}
	| {readonly kind: 'cancelled'}
	| {readonly kind: 'unparseable'; readonly tool: string; readonly line: string}
	/** The tool answered, in words, that it cannot: named cause and what to do about it. */
	| {readonly kind: 'complaint'; readonly tool: string; readonly says: string; readonly advice: string};

export type ReachPhase =
	| 'name'
	| 'connect'
	| 'refused'
	| 'handshake'
	| 'auth'
	| 'channel'
	| 'sessions'
	| 'start'
	| 'keepalive';

export type Outcome<T> = {readonly ok: true; readonly value: T} | {readonly ok: false; readonly failure: Failure};

export const good = <T>(value: T): Outcome<T> => ({ok: true, value});
export const bad = (failure: Failure): {readonly ok: false; readonly failure: Failure} => ({ok: false, failure});

/** Thrown by parsers only; `observe()` turns it into `unparseable`. `line` is the text that did not fit. */
export class ParseError extends Error {
	constructor(
		readonly tool: string,
		readonly line: string,
	) {
		super(`${tool}: cannot read ${JSON.stringify(line.slice(0, 200))}`);
	}
}

/** Thrown by parsers only, when the tool itself says what is wrong; `observe()` turns it into `complaint`. */
export class Complaint extends Error {
	constructor(
		readonly tool: string,
		readonly says: string,
		readonly advice: string,
	) {
		super(`${tool}: ${says}`);
	}
}

/** One sentence for people. Facts first, no stack, no trailing full stop. */
export function describe(failure: Failure): string {
	switch (failure.kind) {
		case 'unreachable':
			return `unreachable (${failure.phase}): ${failure.detail}`;
		case 'denied':
			return `denied: ${failure.detail}`;
		case 'asks':
			return `waits for you: ${failure.detail}`;
		case 'timeout':
			return `no answer in ${(failure.afterMs / 1000).toFixed(failure.afterMs % 1000 ? 1 : 0)} s`;
		case 'exit': {
			const text = (failure.stderr.trim() || failure.stdout.trim()).split('\n').pop() ?? '';
			return `exit ${failure.code}${text ? `: ${text}` : ''}`;
		}
		case 'killed':
			return `killed by ${failure.signal}`;
		case 'lost':
			return `connection lost, outcome unknown: ${failure.detail}`;
		case 'overflow':
			return `answer over ${failure.limitBytes} bytes, abandoned`;
		case 'cancelled':
			return 'cancelled';
		case 'unparseable':
			return `${failure.tool} printed a line that does not fit: ${failure.line}`;
		case 'complaint':
			return `${failure.tool}: ${failure.says}`;
	}
}
