/**
 * Shell function behind `capture`. A plain `$(timeout …)` is no bound: `timeout` and the shell wait for a child that even
 * SIGKILL does not end; so it runs beside, and its pipe is read behind a limit of its own.
 */
export const DEFINE_CAPTURE = `ca() { a=$({ { timeout -k 1 "$@" 2>/dev/null; printf '@%s' $?; } & } | timeout $(($1+2)) cat); r=\${a##*@}; case $r in ''|*[!0-9]*) r=124 ;; *) a=\${a%@*} ;; esac; }`;

/**
 * Shell that runs `command` for at most `seconds` and leaves its output in `$NAME` and its status (124 or 137 without an
 * answer) in `$r`; behind DEFINE_CAPTURE.
 */
export const capture = (name: string, seconds: number, command: string): string =>
	`ca ${seconds} ${command}; ${name}=$a`;

/**
 * The same for a few lines, without processes of its own that read the pipe: reading stops at the line with the status,
 * not at the end. `mark` is a word that the command cannot know. A byte costs a system call: not for more than some KB.
 */
export function captureLines(name: string, seconds: number, command: string, mark: string): string {
	const write = `{ timeout -k 1 ${seconds} ${command} 2>/dev/null; printf '\n@%s %s\n' ${mark} $?; }`;
	const read = `while IFS= read -r l; do pr "$l"; case $l in '@${mark} '*) break ;; esac; done`;
	return `${name}=$(${write} | ${read}); r=\${${name}##*@${mark} }; ${name}=\${${name}%?@${mark} *}`;
}

/**
 * Shell that takes the first number named `key` out of the JSON in `$from` into `$name`, '' when there is none. Without a
 * process: a look costs what it starts. Text inside a JSON string cannot be taken for a key, for its quotes are escaped.
 */
export const memberOf = (name: string, from: string, key: string): string =>
	`${name}=\${${from}#*'"${key}":'}; ${name}=\${${name}# }; ${name}=\${${name}%%[!0-9]*}`;

/** Shell that reads `$PROC/$p/stat` into `$c` without a process, '' when there is none. */
export const READ_STAT =
	'c=; [ -z "$p" ] || { while IFS= read -r l || [ "$l" ]; do c="${c:+$c\n}$l"; done <"$PROC/$p/stat"; } 2>/dev/null';
