import {quote} from '../command.ts';
import {parseTopology, type Topology} from '../formats/topology.ts';
import {ParseError} from '../outcome.ts';
import type {LaunchRecord, ServerPhase} from '../probes/server.ts';
import {phaseBegins, START_LINE} from './phases.ts';

/** How long each phase of a start took, in ms. Phases without a stamp of their own are not there. */
export type PhaseTimes = Readonly<Partial<Record<ServerPhase, number>>>;

/** Of every rank a handful; what is kept of a line is its stamp and what it marks. */
const MOST_LINES = 300;
const LINE_BYTES = 160;
const LONGEST_MS = 24 * 60 * 60_000;
/** A cold cache and a busy disk: a start may take so many times as long as the last one. */
const SLOWER_AT_MOST = 2;
const HEAD = /^phases \S+$/m;
const LINKS_MARK = 'topo ';

/** The newest start that came up: what the next one is held against. null: not noted, or not to be read. */
export type LastStart = {readonly phaseMs: PhaseTimes; readonly topology: Topology | null};

/**
 * Keeps the lines of a start that mark its phases, and how the cards are linked, in a file that outlives its log. Nothing
 * depends on it: a log that gives no such line leaves the file of the start before. `path`: where it is read, `lastStartPath`.
 */
export function noteStart({launchId, log}: Pick<LaunchRecord, 'launchId' | 'log'>, path: string): string {
	const part = quote(`${path}.tmp`);
	return [
		`t=$(timeout -k 1 4 grep -aiE -m ${MOST_LINES} -- ${quote(START_LINE)} ${quote(log)} | cut -b-${LINE_BYTES})`,
		'[ "$t" ] || { echo "not noted: no line of the log tells"; exit 0; }',
		`g=$(timeout -k 1 4 nvidia-smi topo -m 2>/dev/null | sed 's/^/${LINKS_MARK}/')`,
		`printf 'phases %s\\n%s\\n%s\\n' ${quote(launchId)} "$t" "$g" >${part} && mv -f -- ${part} ${quote(path)} && echo noted || echo 'not noted'`,
	].join('\n');
}

/** Splits what was read of all files beside the record, in which this one comes last. */
export function splitStart(text: string): {readonly before: string; readonly start: string} {
	const at = HEAD.exec(text)?.index ?? text.length;
	return {before: text.slice(0, at), start: text.slice(at)};
}

/** Whatever does not fit is left out; null when nothing does. */
export function readLastStart(text: string): LastStart | null {
	if (!HEAD.test(text)) return null;
	const lines = text.split('\n');
	const phaseMs = phaseTimes(lines.filter(line => !line.startsWith(LINKS_MARK)));
	const matrix = lines.flatMap(line => (line.startsWith(LINKS_MARK) ? [line.slice(LINKS_MARK.length)] : []));
	const topology = topologyOf(matrix.join('\n'));
	return Object.keys(phaseMs).length > 0 || topology ? {phaseMs, topology} : null;
}

function topologyOf(text: string): Topology | null {
	try {
		return parseTopology(text);
	} catch (error) {
		if (error instanceof ParseError) return null;
		throw error;
	}
}

function phaseTimes(lines: readonly string[]): PhaseTimes {
	// Only differences count: the host's clock against UTC need not be known.
	const begins = phaseBegins(lines, 0);
	const times: Partial<Record<ServerPhase, number>> = {};
	for (const [index, {phase, at}] of begins.entries()) {
		const next = begins[index + 1]?.at ?? null;
		const ms = at === null || next === null ? -1 : next - at;
		if (ms >= 0 && ms <= LONGEST_MS) times[phase] = ms;
	}
	return times;
}

/** How long a phase may show nothing new: as configured, or longer where the last start took longer. */
export const stallLimitMs = (configuredMs: number, lastMs: number | undefined): number =>
	Math.max(configuredMs, SLOWER_AT_MOST * (lastMs ?? 0));

/** `2 min 10 s`, for a verdict. */
export function spell(ms: number): string {
	const seconds = Math.round(ms / 1_000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
