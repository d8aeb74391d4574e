import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {capture} from './capture.ts';
import {type Answer, identityKey, type Probe, type ProbeContext} from './probe.ts';

/**
 * Command lines by identityKey, asked once per process in a lane of their own: one unlucky process can block the read of
 * its command line for ever. `null`: asked, and no answer came ("unavailable"). Arguments joined by blanks; '' for kernel
 * threads and zombies. Raw: neutralise and redact before drawing.
 */
export type CommandLineFacts = {readonly lines: ReadonlyMap<string, string | null>};

const MOST_ASKED = 20;
/** Pids already answered are checked in turn: the number may name another process by now. */
const MOST_RECHECKED = 4;
const MOST_KEPT = 2000;
/** After so many without an answer the rest waits for the next look. */
const MOST_HUNG = 3;
const SECTIONS = ['lines'] as const;

/**
 * Start ticks first (never blocks); then each pid is announced before its read, which has a limit of 1 s: a hang costs one
 * pid, which stays "unavailable". NUL travels as \\037 and newline as \\036. Source: /proc/N/cmdline.
 */
export const commandLines: Probe<CommandLineFacts> = {
	id: 'command-lines',
	lane: 'command-lines',
	everyMs: 2000,
	limitMs: 15_000,
	capBytes: 262_144,
	script: context => {
		const asked = toAsk(context);
		if (asked.length === 0) return null;
		return [
			DEFINE_MARK,
			`cd "$PROC" || exit 3; ${mark('lines')}; set -f; n=0`,
			`for e in ${asked.join(' ')}; do p=\${e%:*}; s=`,
			'{ while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <$p/stat; } 2>/dev/null || continue',
			'set -- ${s##*) }; [ "${20}" ] && [ "${20}" != "${e#*:}" ] || continue',
			'echo "@ $p ${20}"',
			capture('o', 1, 'head -c 4096 $p/cmdline', " | tr '\\000\\n' '\\037\\036'"),
			`case $r in 124|137) n=$((n+1)) ;; *) echo "= $o" ;; esac; [ $n -lt ${MOST_HUNG} ] || break`,
			'done; true',
		].join('\n');
	},
	parse: parseCommandLines,
};

/** `PID:TICKS` with the ticks already known, `PID:0` for a new one. */
function toAsk({last, hints}: ProbeContext<CommandLineFacts>): readonly string[] {
	const known = new Map([...(last?.lines.keys() ?? [])].map(key => key.split('@') as [string, string]));
	const pids = [...new Set(hints.pids)];
	const fresh = pids.filter(pid => !known.has(String(pid))).slice(0, MOST_ASKED);
	const old = pids.filter(pid => known.has(String(pid)));
	const turn = old.length === 0 ? 0 : Math.floor(hints.nowMs / 2000) % old.length;
	const checked = [...old.slice(turn), ...old.slice(0, turn)].slice(0, MOST_RECHECKED);
	return [...fresh.map(pid => `${pid}:0`), ...checked.map(pid => `${pid}:${known.get(String(pid))}`)];
}

function parseCommandLines(answer: Answer, {last}: ProbeContext<CommandLineFacts>): CommandLineFacts {
	const {lines: text} = readSections('command lines', answer.stdout, SECTIONS);
	const found = new Map<string, string | null>();
	let open: string | null = null;
	for (const line of text.split('\n')) {
		const announced = /^@ (\d+) (\d+)$/.exec(line);
		if (announced) {
			open = identityKey({pid: Number(announced[1]), startTicks: Number(announced[2])});
			/** Until its answer comes: a hang is an answer too. */
			found.set(open, null);
		} else if (open !== null && line.startsWith('= ')) {
			found.set(open, argumentsOf(line.slice(2)));
			open = null;
		}
	}
	/** The very same facts while nothing else was read: the rows of thousands of processes are made of them. */
	if (last && [...found].every(([key, line]) => last.lines.get(key) === line)) return last;
	return {lines: new Map([...(last?.lines ?? []), ...found].slice(-MOST_KEPT))};
}

const argumentsOf = (line: string): string =>
	line
		.replaceAll('\u001e', '\n')
		.replace(/\u001f+$/, '')
		.replaceAll('\u001f', ' ');
