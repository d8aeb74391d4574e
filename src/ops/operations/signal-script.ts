import {quote, show} from '../command.ts';
import type {Identity} from '../probes/probe.ts';
import program from './pidfd.py';

/** A Python that starts takes a tenth of a second. It sends nothing any more (pidfd.py) once the shell has given up on it. */
const PYTHON_LIMIT_S = 4;

/**
 * Signals to processes by identity: boot id, pid and start ticks. One line of verdict each: `sent`, `gone`, `ended` (a
 * zombie without live threads), `other` (the pid is somebody else's now; nothing was sent). Exit 4 when the host was booted
 * since. With `python` (the configured server's) by pidfd, said as `by pidfd`: no pid can be given to somebody else between
 * the look and the signal. Whatever it did not do, and all without it, is read, compared and signalled with builtins alone,
 * so that no fork stands between; with `python` said as `by pid and start ticks: WHY`.
 */
export function signalScript(
	signal: string,
	bootId: string,
	targets: readonly Pick<Identity, 'pid' | 'startTicks'>[],
	python: string | null,
): string {
	return [
		'set -f',
		`read -r b <"$PROC/sys/kernel/random/boot_id"; [ "$b" = ${quote(bootId)} ] || { echo "other boot: $b"; exit 4; }`,
		"d=' '",
		...(python === null ? [] : byPidfd(signal, targets, python)),
		'sig() {',
		'  case $d in *" $1 "*) return ;; esac',
		'  s=; { while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"$PROC/$1/stat"; } 2>/dev/null || { echo "$1 gone"; return; }',
		'  set -- "$1" "$2" ${s##*) }',
		'  [ "${22}" = "$2" ] || { echo "$1 other"; return; }',
		'  [ "$3" = Z ] && [ "${20}" -le 1 ] && { echo "$1 ended"; return; }',
		`  kill -s ${quote(signal)} "$1" && echo "$1 sent"`,
		'}',
		...targets.map(({pid, startTicks}) => `sig ${pid} ${startTicks}`),
	].join('\n');
}

/**
 * Leaves in `$d` whom Python has a verdict on. A Python on a dead mount is not ended by SIGKILL: it is a child in the
 * background, and its pipe is read behind a limit of its own.
 */
function byPidfd(
	signal: string,
	targets: readonly Pick<Identity, 'pid' | 'startTicks'>[],
	python: string,
): readonly string[] {
	const pairs = targets.map(({pid, startTicks}) => `${pid} ${startTicks}`).join(' ');
	const all = targets.map(({pid}) => `${pid} `).join('');
	return [
		'read -r u r <"$PROC/uptime"',
		'py() {',
		`exec timeout -k 1 ${PYTHON_LIMIT_S} ${show([python, '-I', '-S', '-'])} "$PROC" "$u" ${quote(signal)} ${pairs} 2>&1 <<'RELIGHT'`,
		`${program}RELIGHT`,
		'}',
		`w=${quote(`${python} gave no answer`)}; IFS='`,
		`'; for l in $({ py & } | timeout ${PYTHON_LIMIT_S + 1} cat); do`,
		"  case $l in [0-9]*' sent' | [0-9]*' gone' | [0-9]*' other' | [0-9]*' ended') ;; *) w=$l; continue ;; esac",
		`  [ "$d" = ' ' ] && echo 'by pidfd'; echo "$l"; d="$d\${l% *} "`,
		'done; unset IFS',
		`[ "$d" = ${quote(` ${all}`)} ] || echo "by pid and start ticks: $w"`,
	];
}
