import {quote} from '../command.ts';
import {foldLines} from '../formats/progress-lines.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {Complaint, ParseError} from '../outcome.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

/** Tail of one log on the host. `inode` and `offsetBytes` make the next look ask only for what is new. */
export type LogFacts = {
	readonly path: string;
	readonly state: 'ok' | 'absent' | 'denied';
	readonly inode: string | null;
	/** Where the next look begins: after the last newline that was read, so that an unfinished line is read again whole. */
	readonly offsetBytes: number;
	/** Newest last; carriage-return progress folded to its last state; raw text, neutralise before drawing. */
	readonly lines: readonly string[];
	/** The last of `lines` has no newline yet and is replaced by the next look. */
	readonly unfinished: boolean;
	readonly modifiedAt: number | null;
};

const MOST_BYTES = 65_536;
const MOST_LINES = 2000;
const SECTIONS = ['text'] as const;

/** One line of state, then the bytes from `$3` on if the inode is still `$2`, else the end. */
const READ = [
	'm=$(stat -L -c "%i %s %Y" -- "$1") || { echo absent; exit 0; }',
	'[ -r "$1" ] || { echo denied; exit 0; }',
	'echo "ok $m"; i=$2; o=$3; set -- "$1" $m; [ "$2" = "$i" ] && [ "$3" -ge "$o" ] || o=0',
	`n=$(($3-o)); [ $n -le ${MOST_BYTES} ] || n=${MOST_BYTES}`,
	'[ $n = 0 ] || tail -c +$(($3-n+1)) -- "$1" | head -c $n',
].join('; ');

/**
 * The last 64 KB at first, then what was appended; anew when the file was replaced (inode) or truncated (shorter than what
 * was read). More than 64 KB in one look: its end alone. Source: `stat`, `tail -c` of coreutils.
 */
export const log: Probe<LogFacts> = {
	id: 'log',
	lane: 'files',
	everyMs: 2000,
	limitMs: 8000,
	capBytes: 262_144,
	script: context => {
		const path = context.hints.log;
		if (path === null) return null;
		const last = continued(context);
		return [
			DEFINE_MARK,
			`${mark('text')}; timeout -k 1 2 sh -c '${READ}' - ${quote(path)} '${last?.inode ?? ''}' ${last?.offsetBytes ?? 0} 2>/dev/null; exit $?`,
		].join('\n');
	},
	parse: parseLog,
};

const continued = ({last, hints}: ProbeContext<LogFacts>): LogFacts | null =>
	last?.path === hints.log && last.state === 'ok' ? last : null;

function parseLog(answer: Answer, context: ProbeContext<LogFacts>): LogFacts {
	const path = context.hints.log ?? '';
	/** One character per byte until whole lines are cut out: a look may end inside a UTF-8 character. */
	const sections = readSections('log', answer.bytes.toString('latin1'), SECTIONS);
	const newline = sections.text.indexOf('\n');
	const [state = '', inode = '', size = '', seconds = ''] = sections.text.slice(0, Math.max(0, newline)).split(' ');
	const nothing = {path, inode: null, offsetBytes: 0, lines: [], unfinished: false, modifiedAt: null};
	if (answer.status === 124 || answer.status === 137)
		throw new Complaint('log', `no answer from ${path}`, 'it is on a mount that hangs: see the mounts');
	if (state === 'absent' || state === 'denied') return {...nothing, state};
	const bytes = Number(size);
	if (state !== 'ok' || !Number.isInteger(bytes)) throw new ParseError('stat', sections.text);
	const before = continued(context);
	const start = before?.inode === inode && bytes >= before.offsetBytes ? before.offsetBytes : 0;
	const text = sections.text.slice(newline + 1);
	const from = bytes - text.length;
	const joined = before !== null && start === before.offsetBytes && from === start && before.inode === inode;
	const end = text.lastIndexOf('\n') + 1;
	const utf8 = (part: string) => Buffer.from(part, 'latin1').toString('utf8');
	/** A piece that does not begin where the last one ended begins inside a line. */
	const cut = from > 0 && !joined ? text.indexOf('\n') + 1 : 0;
	const finished = foldLines(utf8(text.slice(cut, Math.max(cut, end))));
	const rest = foldLines(utf8(text.slice(Math.max(cut, end))));
	const earlier = joined ? (before.unfinished ? before.lines.slice(0, -1) : before.lines) : [];
	const lines = [...earlier, ...finished, ...rest].slice(-MOST_LINES);
	return {
		path,
		state,
		inode,
		/** A line of more than one look's bytes is let go: its end counts as a line of its own. */
		offsetBytes: end === 0 && text.length >= MOST_BYTES ? bytes : from + end,
		lines,
		unfinished: rest.length > 0,
		modifiedAt: Number(seconds) * 1000,
	};
}
