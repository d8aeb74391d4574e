import {ParseError} from '../outcome.ts';

/**
 * One process from /proc/PID/stat. Ticks are clock ticks; memory in pages. Name is what stands between the first `(` and
 * the LAST `)`: it may hold blanks, brackets and newlines. Source: proc(5); fixtures/proc-stat.
 */
export type ProcStat = {
	readonly pid: number;
	readonly name: string;
	readonly state: string;
	readonly parentPid: number;
	readonly groupId: number;
	readonly sessionId: number;
	readonly cpuTicks: number;
	readonly threads: number;
	readonly startTicks: number;
	readonly residentPages: number;
};

const FIELDS_AFTER_NAME = 22;
/** A name of 15 bytes cannot hold more newlines than this. */
const LINES_PER_RECORD = 15;

/** Records of several stat files in a row. A record is not a line: it is whole when 22 fields follow its last `)`. */
export function splitStat(text: string): string[] {
	const records: string[] = [];
	let open = '';
	let joined = 0;
	for (const line of text.split('\n')) {
		if (open === '' && line === '') continue;
		open = open === '' ? line : `${open}\n${line}`;
		joined += 1;
		if (isWhole(open)) {
			records.push(open);
			open = '';
			joined = 0;
		} else if (joined > LINES_PER_RECORD) throw new ParseError('/proc/PID/stat', open);
	}
	if (open.trim() !== '') throw new ParseError('/proc/PID/stat', open);
	return records;
}

function isWhole(record: string): boolean {
	let at = record.lastIndexOf(')');
	if (at < 0) return false;
	for (let fields = 0; fields < FIELDS_AFTER_NAME; fields += 1) {
		at = record.indexOf(' ', at + 1);
		if (at < 0) return false;
	}
	return true;
}

export function parseStat(record: string): ProcStat {
	const open = record.indexOf('(');
	const close = record.lastIndexOf(')');
	if (open < 1 || close < open) throw new ParseError('/proc/PID/stat', record);
	const pid = Number(record.slice(0, open));
	const fields = record
		.slice(close + 1)
		.trim()
		.split(' ');
	/** By the number that proc(5) gives the field; the state is 3. */
	const field = (number: number) => {
		const value = Number(fields[number - 3]);
		if (!Number.isFinite(value)) throw new ParseError('/proc/PID/stat', record);
		return value;
	};
	if (!Number.isInteger(pid) || pid < 1) throw new ParseError('/proc/PID/stat', record);
	return {
		pid,
		name: record.slice(open + 1, close),
		state: fields[0] ?? '',
		parentPid: field(4),
		groupId: field(5),
		sessionId: field(6),
		cpuTicks: field(14) + field(15),
		threads: field(20),
		startTicks: field(22),
		residentPages: field(24),
	};
}

/** Start ticks by pid. */
export function startTicksByPid(text: string): ReadonlyMap<number, number> {
	return new Map(
		splitStat(text)
			.map(parseStat)
			.map(stat => [stat.pid, stat.startTicks]),
	);
}
