import {quote, show} from '../command.ts';
import {listenerOf, listensIn} from '../formats/listeners.ts';
import {type ProcStat, parseStat, splitStat} from '../formats/proc-stat.ts';
import {foldLines} from '../formats/progress-lines.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {Complaint, ParseError} from '../outcome.ts';
import {type LastStart, readLastStart, splitStart} from '../server/last-start.ts';
import {offsetMinutesOf, readPhases} from '../server/phases.ts';
import {failureIn} from '../server/signatures.ts';
import type {ServerConfig} from '../target.ts';
import {capture, DEFINE_CAPTURE, memberOf, READ_STAT} from './capture.ts';
import {readLaunchRecord} from './launch-record.ts';
import {type Answer, type Known, known, type Probe, type ProbeContext, unknown} from './probe.ts';

/** The model server as the host shows it. Liveness is tokens advancing; a wrapper that lives over a dead server is dead. */
export type ServerFacts = {
	readonly record: LaunchRecord | null;
	/** A real request of this very launch came back whole: the canary leaves its mark beside the record. */
	readonly proved: boolean;
	/** The recorded identity now. `other`: the pid belongs to somebody else, or the boot id differs. */
	readonly process: 'none' | 'alive' | 'gone' | 'other' | 'zombie' | 'wrapper only';
	readonly phase: ServerPhase;
	readonly shards: {readonly done: number; readonly total: number} | null;
	/** Epoch ms of the first log line of this phase as far as it is known, to tell stalls. */
	readonly phaseSince: number | null;
	/** The newest start that came up, this one or one before; null when none left a note. */
	readonly lastStart: LastStart | null;
	readonly failure: ServerFailure | null;
	readonly logSizeBytes: number | null;
	readonly logModifiedAt: number | null;
	readonly tail: readonly string[];
	/** Who listens on the configured port; null: nobody. Unknown without a tool that tells. */
	readonly portOwner: Known<{readonly pid: number | null; readonly name: string} | null>;
	readonly tokensPerSecond: number | null;
	readonly cachedTokens: number | null;
	/** Answer to HTTP from the host's loopback, when asked. */
	readonly health: Known<number>;
};

export type ServerPhase =
	| 'none'
	| 'arguments'
	| 'distributed'
	| 'loading'
	| 'memory'
	| 'http'
	| 'ready'
	| 'serving'
	| 'dead'
	| 'unknown';

export type ServerFailure = {readonly class: string; readonly line: string; readonly advice: string};

/** What a launch leaves behind on the host: enough to find, name and stop exactly that server and no other. */
export type LaunchRecord = {
	readonly launchId: string;
	readonly bootId: string;
	readonly pid: number;
	readonly startTicks: number;
	readonly unit: string | null;
	readonly port: number;
	readonly argv: readonly string[];
	readonly log: string;
	readonly at: number;
};

/** The record and what is noted beside it, the last start at the end. */
const besideRecord = (server: ServerConfig) => [launchRecordPath(server), provedPath(server), lastStartPath(server)];

const SECTIONS = ['boot', 'record', 'stat', 'family', 'port', 'log'] as const;
const TAIL_LINES = 200;

/** Holds the id of the launch that was proved last. */
export const provedPath = (server: ServerConfig): string => `${launchRecordPath(server)}.proved`;

/** Holds what the newest start that came up was like. */
export const lastStartPath = (server: ServerConfig): string => `${launchRecordPath(server)}.start`;

export const launchRecordPath = (server: ServerConfig): string => `${server.log}/relight-launch-${server.name}.json`;

/**
 * Record, recorded process, its descendants when it is a shell, the port, and the end of the log when size or time moved.
 * Files may lie on a dead mount, so each read has its own limit; a record that does not come is a Complaint. Health is not
 * asked here. Source: the launch record, /proc/PID/stat, `ss -ltnpH`; fixtures/sglang, fixtures/ss.
 */
export const server: Probe<ServerFacts> = {
	id: 'server',
	lane: 'files',
	everyMs: 2000,
	paceMs: ({process}) => (process === 'alive' ? 2_000 : 5_000),
	limitMs: 12_000,
	capBytes: 1_048_576,
	script: ({target, hints, last}) => {
		if (target.server === null) return null;
		const {port} = target.server;
		return [
			DEFINE_MARK,
			DEFINE_CAPTURE,
			capture('j', 2, `head -qc 65536 ${show(besideRecord(target.server))}`),
			`${mark('boot')}; read -r b <"$PROC/sys/kernel/random/boot_id"; echo "$b $r"; ${mark('record')}; printf %s "$j"`,
			`${memberOf('p', 'j', 'pid')}; g=\${j#*'"log":'}; if [ "$g" = "$j" ]; then g=${quote(hints.serverLog ?? '')}; else g=\${g#*'"'}; g=\${g%%'"'*}; fi`,
			`cd "$PROC" || exit 3; ${mark('stat')}; ${READ_STAT}; pr "$c"`,
			`${mark('family')}; case $c in *'(sh)'*|*'(bash)'*|*'(dash)'*|*'(nohup)'*|*'(timeout)'*|*'(setsid)'*) grep -h -e ") [A-Za-z] $p " -e ") [A-Za-z] [0-9]* [0-9]* $p " [0-9]*/stat 2>/dev/null ;; esac`,
			`${mark('port')}; if o=$(ss -ltnpH 'sport = :${port}' 2>/dev/null); then echo ss; pr "$o"; elif o=$(cat net/tcp net/tcp6 2>/dev/null); [ "$o" ]; then echo net; pr "$o"; fi`,
			`${mark('log')}; [ -z "$g" ] || timeout -k 1 2 sh -c 'm=$(stat -L -c "%s %Y" -- "$1") || exit; echo "$m $(date +%z)"; [ "$m" = "$2" ] || tail -c 65536 -- "$1"' - "$g" '${seenLog(last)}' 2>/dev/null; true`,
		].join('\n');
	},
	parse: parseServer,
};

/** `SIZE SECONDS` of a log whose end need not be sent again; '' when it must: nothing read yet, or a death to be sure of. */
function seenLog(last: ServerFacts | null): string {
	if (!last || last.logSizeBytes === null || last.phase === 'dead') return '';
	return `${last.logSizeBytes} ${(last.logModifiedAt ?? 0) / 1000}`;
}

function parseServer(answer: Answer, {target, last, hints}: ProbeContext<ServerFacts>): ServerFacts {
	const sections = readSections('server', answer.stdout, SECTIONS);
	const [bootId = '', status = ''] = sections.boot.trim().split(' ');
	if (bootId === '') throw new ParseError('boot_id', sections.boot);
	if (status === '124' || status === '137')
		throw new Complaint(
			'server log',
			'no answer in 2 s',
			`the directory ${target.server?.log ?? ''} is on a mount that hangs: see the mounts`,
		);
	const {before, start} = splitStart(sections.record);
	const [, recorded = before, proved = ''] = /^\s*(\{.*\})\s*(\S*)\s*$/s.exec(before) ?? [];
	const record = readLaunchRecord(recorded);
	const process = record ? recordedProcess(record, bootId, sections.stat, sections.family) : 'none';
	const state = /^(\d+) (\d+) (\S*)\n/.exec(sections.log);
	const zone = state?.[3] ?? '';
	const logSizeBytes = state ? Number(state[1]) : null;
	const logModifiedAt = state ? Number(state[2]) * 1000 : null;
	const same = last !== null && last.record?.launchId === record?.launchId;
	const unread = state !== null && seenLog(last) === `${state[1]} ${state[2]}`;
	/** An untouched log of another launch tells nothing about this one. */
	const told =
		unread && same
			? pick(last)
			: readLog(sections.log.slice(state?.[0].length ?? 0), {
					zone,
					before: same ? last : null,
					nowMs: hints.nowMs,
					logModifiedAt,
				});
	const ended = process !== 'alive' && process !== 'none';
	const portOwner = portOwnerOf(sections.port, target.server?.port ?? 0);
	return {
		record,
		proved: record !== null && proved === record.launchId,
		process,
		...told,
		lastStart: readLastStart(start),
		phase: ended ? 'dead' : logSizeBytes === null ? phaseWithoutLog(process, portOwner) : told.phase,
		logSizeBytes,
		logModifiedAt,
		portOwner,
		health: unknown('not asked'),
	};
}

/** Programs that only carry another one. */
const CARRIERS = new Set(['sh', 'bash', 'dash', 'nohup', 'setsid', 'timeout', 'env', 'tee', 'cat', 'sleep']);

function recordedProcess(record: LaunchRecord, bootId: string, stat: string, family: string): ServerFacts['process'] {
	if (record.bootId !== bootId) return 'other';
	const now = readStats(stat)[0];
	if (!now) return 'gone';
	if (now.startTicks !== record.startTicks) return 'other';
	if (now.state === 'Z' || now.state === 'X') return 'zombie';
	if (!CARRIERS.has(now.name)) return 'alive';
	const carried = readStats(family).some(
		one => one.pid !== record.pid && one.state !== 'Z' && one.state !== 'X' && !CARRIERS.has(one.name),
	);
	return carried ? 'alive' : 'wrapper only';
}

const readStats = (text: string): readonly ProcStat[] => (text.trim() === '' ? [] : splitStat(text).map(parseStat));

function portOwnerOf(text: string, port: number): ServerFacts['portOwner'] {
	if (text.startsWith('ss\n')) return known(listenerOf(text, port));
	if (text.startsWith('net\n')) return known(listensIn(text, port) ? {pid: null, name: ''} : null);
	return unknown('no ss and no table of sockets');
}

/** Nothing written yet, or no log known: a listener that nobody recorded is somebody else's server. */
const phaseWithoutLog = (process: ServerFacts['process'], port: ServerFacts['portOwner']): ServerPhase => {
	if (process === 'alive') return 'unknown';
	return port.known && port.value === null ? 'none' : 'unknown';
};

type Told = Pick<
	ServerFacts,
	'phase' | 'phaseSince' | 'shards' | 'failure' | 'tail' | 'tokensPerSecond' | 'cachedTokens'
>;

const pick = ({phase, phaseSince, shards, failure, tail, tokensPerSecond, cachedTokens}: ServerFacts): Told => ({
	phase,
	phaseSince,
	shards,
	failure,
	tail,
	tokensPerSecond,
	cachedTokens,
});

type Reading = {
	readonly zone: string;
	readonly before: ServerFacts | null;
	readonly nowMs: number;
	readonly logModifiedAt: number | null;
};

function readLog(text: string, {zone, before, nowMs, logModifiedAt}: Reading): Told {
	const lines = foldLines(text);
	const {startsAt, ...reading} = readPhases(lines, offsetMinutesOf(zone));
	const found = failureIn(lines.slice(startsAt));
	const living = before && before.phase !== 'dead' ? before : null;
	/** The end of a long log shows no phase any more: what was reached stays reached. */
	const phase = reading.phase ?? living?.phase ?? 'unknown';
	const since = phase === living?.phase ? living.phaseSince : (reading.phaseSince ?? (before ? nowMs : logModifiedAt));
	return {
		phase,
		phaseSince: since,
		shards: reading.shards ?? before?.shards ?? null,
		failure: found ? {class: found.class, line: found.line, advice: found.advice} : null,
		tail: lines.slice(-TAIL_LINES),
		tokensPerSecond: reading.tokensPerSecond,
		cachedTokens: reading.cachedTokens,
	};
}
