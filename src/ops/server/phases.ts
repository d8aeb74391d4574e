import type {ServerPhase} from '../probes/server.ts';

/** What a stretch of server log tells. Times are epoch ms, null where no line has a stamp; rates null without such lines. */
export type LogReading = {
	readonly phase: ServerPhase | null;
	readonly phaseSince: number | null;
	readonly shards: {readonly done: number; readonly total: number} | null;
	readonly tokensPerSecond: number | null;
	readonly cachedTokens: number | null;
	/** Index of the line with which the newest start in this text begins; failures above it are of an earlier one. */
	readonly startsAt: number;
};

const PHASE_LINES: readonly (readonly [phase: ServerPhase, pattern: RegExp])[] = [
	['arguments', /server_args=ServerArgs\(/],
	['distributed', /Init torch distributed (begin|ends)\./],
	['loading', /Load weight begin\.|Loading safetensors checkpoint shards:|Multi-thread loading shards/],
	['memory', /Load weight end\.|KV Cache is allocated\.|Memory pool end\.|max_total_num_tokens=|Capture cuda graph/i],
	['memory', /Registered forward hook '/],
	['http', /Uvicorn running on|Application startup complete/],
	['ready', /The server is fired up and ready to roll!/],
	['serving', /(Prefill|Decode) batch[,. ]/],
];

/** Lines with a stamp that mark a phase of a start, for grep -iE: every pattern above is one of its, too. */
export const START_LINE = `^\\[[^]]*\\] .*(${PHASE_LINES.filter(([phase]) => phase !== 'serving')
	.map(([, pattern]) => pattern.source)
	.join('|')})`;

const ORDER: readonly ServerPhase[] = ['arguments', 'distributed', 'loading', 'memory', 'http', 'ready', 'serving'];

const SHARDS = /(?:checkpoint shards|loading shards):?[^|]*\|\s*(\d+)\/(\d+)/;
const PREFILL = /Prefill batch.*?#new-token: (\d+).*?#cached-token: (\d+)/;
const THROUGHPUT = /input throughput \(token\/s\): ([\d.]+)/;
/** Rates are of the newest batches alone. */
const RATE_LINES = 10;

/**
 * Folded lines → where the server is. Ranks interleave and repeat, so a phase never goes back, except by a new start in the
 * same file. `offsetMinutes` is the host's clock against UTC: stamps are local time (`[2026-01-31 17:10:00 TP0]`).
 * Source: extraction-domain 3.4; fixtures/sglang.
 */
export function readPhases(lines: readonly string[], offsetMinutes: number | null): LogReading {
	const startsAt = Math.max(
		0,
		lines.findLastIndex(line => PHASE_LINES[0]?.[1].test(line)),
	);
	let shards: LogReading['shards'] = null;
	let cached: number | null = null;
	const rates: number[] = [];
	for (const line of lines.slice(startsAt)) {
		const shard = SHARDS.exec(line);
		if (shard) shards = {done: Number(shard[1]), total: Number(shard[2])};
		const prefill = PREFILL.exec(line);
		if (prefill) cached = (cached ?? 0) + Number(prefill[2]);
		const rate = prefill ? THROUGHPUT.exec(line)?.[1] : undefined;
		if (rate !== undefined) rates.push(Number(rate));
	}
	const recent = rates.slice(-RATE_LINES);
	const reached = phaseBegins(lines.slice(startsAt), offsetMinutes).at(-1);
	return {
		phase: reached?.phase ?? null,
		phaseSince: reached?.at ?? null,
		shards,
		tokensPerSecond: recent.length === 0 ? null : recent.reduce((sum, rate) => sum + rate, 0) / recent.length,
		cachedTokens: cached,
		startsAt,
	};
}

/** The phases of one start in order, with the stamp (epoch ms) at which each began; null where no line before had one. */
export function phaseBegins(
	lines: readonly string[],
	offsetMinutes: number | null,
): readonly {readonly phase: ServerPhase; readonly at: number | null}[] {
	const begins: {phase: ServerPhase; at: number | null}[] = [];
	let reached = -1;
	let stamp: number | null = null;
	for (const line of lines) {
		stamp = stampOf(line, offsetMinutes) ?? stamp;
		const phase = PHASE_LINES.find(([, pattern]) => pattern.test(line))?.[0];
		if (phase === undefined || ORDER.indexOf(phase) <= reached) continue;
		reached = ORDER.indexOf(phase);
		begins.push({phase, at: stamp});
	}
	return begins;
}

function stampOf(line: string, offsetMinutes: number | null): number | null {
	if (offsetMinutes === null) return null;
	const match = /^\[(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)/.exec(line);
	if (!match) return null;
	const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
	return Date.UTC(year, month - 1, day, hour, minute, second) - offsetMinutes * 60_000;
}

/** `+0100` from `date +%z` → 60; null when it does not fit. */
export function offsetMinutesOf(text: string): number | null {
	const match = /^([+-])(\d\d)(\d\d)$/.exec(text.trim());
	if (!match) return null;
	const minutes = Number(match[2]) * 60 + Number(match[3]);
	return match[1] === '-' ? -minutes : minutes;
}
