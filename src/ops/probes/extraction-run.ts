import {parseStat, splitStat} from '../formats/proc-stat.ts';
import {foldLines} from '../formats/progress-lines.ts';
import {ParseError} from '../outcome.ts';
import type {ExtractionRun} from './extraction.ts';

export type RunTexts = {
	/** The run's own progress file; '' when there is none. */
	readonly progress: string;
	/** Boot id, then the stat line of the pid that the progress file names. */
	readonly stat: string;
	/** Epoch seconds of the script's log, then its last lines; '' when there is none. */
	readonly log: string;
	/** The host's clock when this was read. */
	readonly clockMs: number;
	readonly expected: number | null;
};

/** The run as it tells of itself: its progress file before the log of a foreign script; null when there is neither. */
export function readRun(texts: RunTexts): ExtractionRun | null {
	if (texts.progress.trim() !== '') return readProgress(texts);
	return texts.log === '' ? null : readScriptLog(texts);
}

const SCHEMA = 'relight.progress/1';
const STATES = ['verifying', 'waiting for server', 'extracting', 'finished', 'stopped', 'failed'] as const;

/** Strict in shape: a file of another schema or with a wrong type is a ParseError; numbers that it leaves out are null. */
function readProgress({progress, stat}: RunTexts): ExtractionRun {
	const file = parseObject(progress);
	const wrong = (): never => {
		throw new ParseError('progress file', progress.trim());
	};
	if (file.schema !== SCHEMA) wrong();
	const number = (key: string): number | null => {
		const value = file[key];
		if (value === null || value === undefined) return null;
		return typeof value === 'number' && Number.isFinite(value) ? value : wrong();
	};
	const text = (key: string): string | null => {
		const value = file[key];
		if (value === null || value === undefined) return null;
		return typeof value === 'string' ? value : wrong();
	};
	const state = STATES.find(known => known === file.state) ?? wrong();
	const pid = number('pid');
	const startTicks = number('startTicks');
	return {
		source: 'progress',
		state,
		pid,
		startTicks,
		alive: pid === null || startTicks === null ? null : isAlive({pid, startTicks, bootId: text('bootId')}, stat),
		extracted: number('extracted') ?? wrong(),
		skipped: number('skipped'),
		errors: number('errors') ?? wrong(),
		tokens: number('tokens'),
		samplesPerSecond: number('samplesPerSecond'),
		tokensPerSecond: number('tokensPerSecond'),
		bytesPerSecond: number('bytesPerSecond'),
		etaMs: readEta(file.etaMs, wrong),
		lastIndex: number('lastIndex'),
		updatedAt: number('updatedAt'),
		message: text('message'),
	};
}

function readEta(value: unknown, wrong: () => never): ExtractionRun['etaMs'] {
	if (value === null || value === undefined) return null;
	if (typeof value !== 'object' || !('low' in value) || !('high' in value)) return wrong();
	const {low, high} = value;
	return typeof low === 'number' && typeof high === 'number' ? {low, high} : wrong();
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
	} catch {
		/** Falls through: text that is no JSON is as foreign as JSON that is no object. */
	}
	throw new ParseError('progress file', text.trim());
}

function isAlive(run: {pid: number; startTicks: number; bootId: string | null}, text: string): boolean {
	const newline = text.indexOf('\n');
	const bootId = (newline < 0 ? text : text.slice(0, newline)).trim();
	const row = newline < 0 ? '' : text.slice(newline + 1);
	if (run.bootId !== null && run.bootId !== bootId) return false;
	const now = row.trim() === '' ? null : splitStat(row).map(parseStat)[0];
	return now?.startTicks === run.startTicks && now.state !== 'Z' && now.state !== 'X';
}

const SKIPPING = /^\s*Skipping (\d+) \(already exists\)/;
const EXTRACTED =
	/^\s*\[(\d+)\] (\d+) extracted \((\d+) total\), ([\d.]+) samples\/s(?:, ([\d.]+) tok\/s)?(?:, req_time=([\d.]+)s)?(?:, ETA: (\d+) min)?(?:, errors: (\d+))?/;
const FAILED = /^Traceback \(most recent call last\)|^(\w+\.)*\w*(Error|Exception): /;
/** A script that prints a line per few samples and then nothing for so long is silent. */
const SILENT_AFTER_MS = 120_000;
const RATE_LINES = 20;

/**
 * A foreign script by the lines it prints. Its tok/s counts skipped samples as work, so tokens stay unknown and the rate is
 * that of samples. Skipped = total − extracted. The ETA is a range: remaining samples at the best and the worst recent rate.
 */
function readScriptLog({log, clockMs, expected}: RunTexts): ExtractionRun {
	const newline = log.indexOf('\n');
	const updatedAt = Number(log.slice(0, newline)) * 1000;
	const lines = foldLines(log.slice(newline + 1));
	const matches = lines.map(line => EXTRACTED.exec(line)).filter(match => match !== null);
	const newest = matches.at(-1);
	const [, lastIndex, extracted = '0', total, rate, , , minutes, errors = '0'] = newest ?? [];
	const done = total === undefined ? null : Number(total);
	const rates = matches.slice(-RATE_LINES).map(match => Number(match[4]));
	return {
		source: 'script log',
		state: scriptState(lines, {done, expected, silentMs: clockMs - updatedAt, started: newest !== undefined}),
		pid: null,
		startTicks: null,
		alive: null,
		extracted: Number(extracted),
		skipped: done === null ? null : done - Number(extracted),
		errors: Number(errors),
		tokens: null,
		samplesPerSecond: rate === undefined ? null : Number(rate),
		tokensPerSecond: null,
		bytesPerSecond: null,
		etaMs: etaOf({done, expected, rates, minutes, rate}),
		lastIndex: lastIndex === undefined ? null : Number(lastIndex),
		updatedAt,
		message: lines.findLast(line => FAILED.test(line))?.trim() ?? null,
	};
}

type Progress = {done: number | null; expected: number | null; silentMs: number; started: boolean};

function scriptState(lines: readonly string[], {done, expected, silentMs, started}: Progress): ExtractionRun['state'] {
	const last = lines.findLastIndex(line => EXTRACTED.test(line) || SKIPPING.test(line));
	if (lines.slice(last + 1).some(line => FAILED.test(line))) return 'failed';
	if (done !== null && expected !== null && done >= expected) return 'finished';
	if (silentMs > SILENT_AFTER_MS) return 'silent';
	return started ? 'extracting' : 'starting';
}

type EtaParts = {
	readonly done: number | null;
	readonly expected: number | null;
	readonly rates: readonly number[];
	readonly minutes: string | undefined;
	readonly rate: string | undefined;
};

function etaOf({done, expected, rates, minutes, rate}: EtaParts): ExtractionRun['etaMs'] {
	const moving = rates.filter(each => each > 0);
	if (moving.length === 0) return null;
	const told = minutes === undefined || rate === undefined ? null : Number(minutes) * 60 * Number(rate);
	const remaining = expected !== null && done !== null ? Math.max(0, expected - done) : told;
	if (remaining === null) return null;
	const ms = (perSecond: number) => Math.round((remaining / perSecond) * 1000);
	return {low: ms(Math.max(...moving)), high: ms(Math.min(...moving))};
}
