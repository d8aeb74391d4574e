import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {type Answer, identityKey, type Probe, type ProbeContext} from './probe.ts';

/**
 * Command lines by identityKey, asked once per process in a lane of their own: one unlucky process can block the read of
 * its command line for ever. `null`: asked, and no answer came ("unavailable"). Arguments joined by blanks; '' for kernel
 * threads and zombies. Raw: neutralise and redact before drawing.
 */
export type CommandLineFacts = {readonly lines: ReadonlyMap<string, string | null>};

const MOST_ASKED = 20;
const MOST_KEPT = 2000;
/** After so many without an answer the rest waits for the next look. */
const MOST_HUNG = 3;
const SECTIONS = ['lines'] as const;

/**
 * Start ticks first (never blocks); then each pid is announced before its read, which has a limit of 1 s: a hang costs one
 * pid, which stays "unavailable". The reader writes into the lane itself, between two lines with a word that no process can
 * know: a capture would wait for a reader that cannot be ended, or cost more than the reading. Source: /proc/N/cmdline.
 */
export const commandLines: Probe<CommandLineFacts> = {
	id: 'command-lines',
	lane: 'command-lines',
	everyMs: 2000,
	limitMs: 15_000,
	capBytes: 262_144,
	script: ({hints}) => {
		if (hints.unreadLines.length === 0) return null;
		return [
			DEFINE_MARK,
			`cd "$PROC" || exit 3; ${mark('lines')}; set -f; n=0`,
			`for p in ${hints.unreadLines.slice(0, MOST_ASKED).join(' ')}; do s=`,
			'{ while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <$p/stat; } 2>/dev/null || continue',
			'set -- ${s##*) }; [ "${20}" ] || continue',
			`printf '\\n@%s %s %s\\n' ${hints.nowMs} $p \${20}; timeout -k 1 1 head -c 4096 $p/cmdline 2>/dev/null; r=$?`,
			`printf '\\n@%s = %s\\n' ${hints.nowMs} $r`,
			`case $r in 124|137) n=$((n+1)) ;; esac; [ $n -lt ${MOST_HUNG} ] || break`,
			'done; true',
		].join('\n');
	},
	parse: parseCommandLines,
};

function parseCommandLines(answer: Answer, {last, hints}: ProbeContext<CommandLineFacts>): CommandLineFacts {
	const {lines: text} = readSections('command lines', answer.stdout, SECTIONS);
	const found = new Map<string, string | null>();
	let open: {readonly key: string; readonly line: string} | null = null;
	for (const part of text.split(`\n@${hints.nowMs} `)) {
		const [, pid, ticks, line = ''] = /^(\d+) (\d+)\n([\s\S]*)$/.exec(part) ?? [];
		if (pid !== undefined) {
			open = {key: identityKey({pid: Number(pid), startTicks: Number(ticks)}), line};
			/** Until its answer comes: a hang is an answer too. */
			found.set(open.key, null);
		} else if (open !== null && /^= \d+$/m.test(part)) {
			if (!/^= (124|137)$/m.test(part)) found.set(open.key, argumentsOf(open.line));
			open = null;
		}
	}
	/** The very same facts while nothing else was read: the rows of thousands of processes are made of them. */
	if (last && [...found].every(([key, line]) => last.lines.get(key) === line)) return last;
	return {lines: new Map([...(last?.lines ?? []), ...found].slice(-MOST_KEPT))};
}

const argumentsOf = (line: string): string => line.replace(/\0+$/, '').replaceAll('\0', ' ');
