/**
 * Shell that runs `command` for at most `seconds` and leaves its output in `$NAME` and its status (124 or 137 without an
 * answer) in `$r`. A plain `$(timeout …)` is no bound: a child that even SIGKILL does not end keeps the pipe open, and the
 * shell waits for its end; so the pipe is read behind a limit of its own. `after` may filter what was read.
 */
export function capture(name: string, seconds: number, command: string, after = ''): string {
	const read = `{ timeout -k 1 ${seconds} ${command} 2>/dev/null; printf '@%s' $?; } | timeout ${seconds + 2} cat${after}`;
	return `${name}=$(${read}); r=\${${name}##*@}; ${name}=\${${name}%@*}`;
}
