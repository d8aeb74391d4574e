import {quote} from '../command.ts';
import type {Identity} from '../probes/probe.ts';

/**
 * Signals to processes by identity: boot id, pid and start ticks are read, compared and used with builtins alone, so no
 * fork stands between the look and the kill. One line of verdict each: `sent`, `gone`, `ended` (a zombie without
 * live threads), `other` (the
 * pid is somebody else's now; nothing was sent). Exit 4 when the host was booted since.
 */
export function signalScript(
	signal: string,
	bootId: string,
	targets: readonly Pick<Identity, 'pid' | 'startTicks'>[],
): string {
	return [
		'set -f',
		`read -r b <"$PROC/sys/kernel/random/boot_id"; [ "$b" = ${quote(bootId)} ] || { echo "other boot: $b"; exit 4; }`,
		'sig() {',
		'  s=; { while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"$PROC/$1/stat"; } 2>/dev/null || { echo "$1 gone"; return; }',
		'  set -- "$1" "$2" ${s##*) }',
		'  [ "${22}" = "$2" ] || { echo "$1 other"; return; }',
		'  [ "$3" = Z ] && [ "${20}" -le 1 ] && { echo "$1 ended"; return; }',
		`  kill -s ${quote(signal)} "$1" && echo "$1 sent"`,
		'}',
		...targets.map(({pid, startTicks}) => `sig ${pid} ${startTicks}`),
	].join('\n');
}
