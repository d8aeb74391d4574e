import {quote} from '../command.ts';
import type {LaunchRecord, ServerPhase} from '../probes/server.ts';
import {phaseBegins, START_LINE} from './phases.ts';

/** How long each phase of the newest start that came up took, in ms. Phases without a stamp of their own are not there. */
export type PhaseTimes = Readonly<Partial<Record<ServerPhase, number>>>;

/** Of every rank a handful; what is kept of a line is its stamp and what it marks. */
const MOST_LINES = 300;
const LINE_BYTES = 160;
const LONGEST_MS = 24 * 60 * 60_000;
/** A cold cache and a busy disk: a start may take so many times as long as the last one. */
const SLOWER_AT_MOST = 2;
const HEAD = /^phases \S+$/m;

/**
 * Keeps the lines of a start that mark its phases, in a file that outlives its log. Nothing depends on it: a log that gives
 * no such line leaves the file of the start before. `path` is where the probe of the server reads it (`phasesPath`).
 */
export function notePhases({launchId, log}: Pick<LaunchRecord, 'launchId' | 'log'>, path: string): string {
	const part = quote(`${path}.tmp`);
	return [
		`t=$(timeout -k 1 4 grep -aiE -m ${MOST_LINES} -- ${quote(START_LINE)} ${quote(log)} | cut -b-${LINE_BYTES})`,
		'[ "$t" ] || { echo "not noted: no line of the log tells"; exit 0; }',
		`printf 'phases %s\\n%s\\n' ${quote(launchId)} "$t" >${part} && mv -f -- ${part} ${quote(path)} && echo noted || echo 'not noted'`,
	].join('\n');
}

/** Splits what was read of all files beside the record, in which this one comes last. */
export function splitPhases(text: string): {readonly before: string; readonly phases: string} {
	const at = HEAD.exec(text)?.index ?? text.length;
	return {before: text.slice(0, at), phases: text.slice(at)};
}

/** Whatever does not fit is left out; null when nothing does. */
export function readPhaseTimes(text: string): PhaseTimes | null {
	if (!HEAD.test(text)) return null;
	// Only differences count: the host's clock against UTC need not be known.
	const begins = phaseBegins(text.split('\n'), 0);
	const times: Partial<Record<ServerPhase, number>> = {};
	for (const [index, {phase, at}] of begins.entries()) {
		const next = begins[index + 1]?.at ?? null;
		const ms = at === null || next === null ? -1 : next - at;
		if (ms >= 0 && ms <= LONGEST_MS) times[phase] = ms;
	}
	return Object.keys(times).length > 0 ? times : null;
}

/** How long a phase may show nothing new: as configured, or longer where the last start took longer. */
export const stallLimitMs = (configuredMs: number, lastMs: number | undefined): number =>
	Math.max(configuredMs, SLOWER_AT_MOST * (lastMs ?? 0));

/** `2 min 10 s`, for a verdict. */
export function spell(ms: number): string {
	const seconds = Math.round(ms / 1_000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
