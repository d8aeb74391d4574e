import {type Command, quote, show} from '../command.ts';

export type Launch = {
	readonly unit: string;
	readonly argv: Command;
	readonly env: Readonly<Record<string, string>>;
	readonly log: string;
	readonly directories: readonly string[];
	/** Where the pid and identity are left for later looks. */
	readonly recordPath: string;
	readonly record: Readonly<Record<string, unknown>>;
	/** It may have done all there is to do before anybody looks: no process is then no failure, if its unit ended well. */
	readonly mayEnd?: boolean;
};

const pidFileOf = ({recordPath, record}: Pick<Launch, 'recordPath' | 'record'>) =>
	`${recordPath}.${record.launchId}.pid`;

const folder = (path: string) => path.replace(/\/[^/]*$/, '') || '/';

/**
 * A start that outlives the console. With systemd: a transient unit under a name of its own (own cgroup, found by name,
 * survives every lost link). systemd expands `$` in the command, so each is doubled. Without: a session of its own by
 * `setsid -f`, never with a terminal on any descriptor. Either way a launch begins once, by the name of its unit or of its
 * pid file: one that was sent again, since nobody saw the first begin, cannot become two.
 */
export function startScript(
	{unit, argv, env, log, directories, recordPath, record}: Launch,
	manager: 'systemd' | 'none',
): string {
	const places = [...new Set([folder(log), folder(recordPath), ...directories])];
	const make = `mkdir -p ${show(places)} || exit 1`;
	const settings = Object.entries(env).map(([key, value]) => `${key}=${value}`);
	if (manager === 'systemd') {
		const command = [
			'systemd-run',
			'--no-ask-password',
			`--unit=${unit}`,
			'-p',
			`StandardOutput=append:${log}`,
			'-p',
			`StandardError=append:${log}`,
			'-p',
			'KillMode=control-group',
			...settings.map(each => `--setenv=${each}`),
			'--',
			...argv.map(word => word.replaceAll('$', '$$$$')),
		];
		return `${make}\n${show(command)}`;
	}
	const pidFile = quote(pidFileOf({recordPath, record}));
	const inner = `echo $$ >${pidFile}; exec "$@"`;
	const claim = `(set -C; : >${pidFile}) 2>/dev/null || { echo "this launch was begun before" >&2; exit 1; }`;
	return `${make}\n${claim}\nsetsid -f sh -c ${quote(inner)} sh ${show(['env', ...settings, ...argv])} </dev/null >>${quote(log)} 2>&1`;
}

/**
 * Leaves the launch record: which boot, pid and start ticks this launch is. It reads the pid back from where it runs, so a
 * start that died at once leaves no record and exits 1.
 */
export function recordScript({unit, recordPath, record, mayEnd = false}: Launch, manager: 'systemd' | 'none'): string {
	const ask =
		manager === 'systemd'
			? `p=$(timeout -k 1 5 systemctl show -p MainPID ${quote(unit)}); p=\${p#MainPID=}`
			: `read -r p <${quote(pidFileOf({recordPath, record}))}`;
	const fields = JSON.stringify(record).slice(1, -1);
	const temporary = quote(`${recordPath}.tmp`);
	const hasEnded = `case $(timeout -k 1 5 systemctl show -p ActiveState ${quote(unit)}) in *=inactive) ;; *) false ;; esac`;
	const short = mayEnd && manager === 'systemd';
	return [
		'set -f; n=0; t=',
		...(short ? [`e() { ${hasEnded}; }`] : []),
		`while [ $n -lt 40 ]; do n=$((n+1)); p=; { ${ask}; } 2>/dev/null`,
		'  s=; [ "${p:-0}" -gt 0 ] 2>/dev/null && { while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done <"$PROC/$p/stat"; } 2>/dev/null',
		'  set -- ${s##*) }; t=${20}; [ -n "$t" ] && [ "$1" != Z ] && break; t=; sleep 0.25',
		...(short ? ['  [ $n -gt 3 ] && e && break'] : []),
		'done',
		...(short ? ['if [ -z "$t" ] && e; then echo "it has ended already, and well"; exit 0; fi'] : []),
		'[ -n "$t" ] || { echo "no process was found for this launch"; exit 1; }',
		'read -r b <"$PROC/sys/kernel/random/boot_id"',
		`{ printf '{"bootId":"%s","pid":%d,"startTicks":%d,' "$b" "$p" "$t"; printf '%s}\\n' ${quote(fields)}; } >${temporary} && mv -f ${temporary} ${quote(recordPath)} && echo "pid $p started at tick $t"`,
	].join('\n');
}
