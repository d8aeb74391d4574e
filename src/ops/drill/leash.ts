import {execFileSync, spawn} from 'node:child_process';
import {closeSync, constants, openSync, readFileSync, readlinkSync} from 'node:fs';
import type {BoxPaths} from './paths.ts';

/**
 * The *leash* is a FIFO in the box that the drill alone holds open for writing. Everything that runs in the box has a read
 * end of it as descriptor 3, inherited through any chain of shells: that link is what makes a process a box process, and
 * its end is how the box learns that the drill is gone.
 */
export type Leash = {
	readonly path: string;
	/** For `stdio[3]` of a spawn; also for stdin of programs that shall live exactly as long as the drill. */
	readonly readEnd: number;
	/** Ends everything that still waits for the leash. */
	cut(): void;
};

export function makeLeash(paths: BoxPaths): Leash {
	execFileSync('mkfifo', ['-m', '600', paths.leash]);
	// Read and write at once never blocks on a FIFO; both ends close on exec, so no child inherits the writing one.
	const held = openSync(paths.leash, constants.O_RDWR);
	const readEnd = openSync(paths.leash, constants.O_RDONLY);
	let whole = true;
	return {
		path: paths.leash,
		readEnd,
		cut() {
			if (!whole) return;
			whole = false;
			closeSync(held);
			closeSync(readEnd);
		},
	};
}

/** pid and start ticks of a process of the box, or null: gone, a zombie, or not of this box. */
export function boxIdentity(pid: number, leash: string): {pid: number; startTicks: number} | null {
	try {
		if (readlinkSync(`/proc/${pid}/fd/3`) !== leash) return null;
		return {pid, startTicks: startTicksOf(readFileSync(`/proc/${pid}/stat`, 'latin1'))};
	} catch {
		return null;
	}
}

/** Field 22 of a `stat` record; the name in field 2 may hold anything, also `) `. */
export const startTicksOf = (stat: string): number => Number(fieldsAfterName(stat)[19]);

export const fieldsAfterName = (stat: string): string[] =>
	stat
		.slice(stat.lastIndexOf(')') + 2)
		.trimEnd()
		.split(' ');

/**
 * Sends a signal to exactly that process of the box. false: it is gone, or the pid belongs to somebody else now.
 */
export function signalBoxProcess(leash: string, pid: number, startTicks: number, signal: NodeJS.Signals): boolean {
	if (boxIdentity(pid, leash)?.startTicks !== startTicks) return false;
	try {
		process.kill(pid, signal);
		return true;
	} catch {
		return false;
	}
}

/**
 * A small program outside the box that waits for the end of the leash and then kills what does not look at it itself: a
 * plain `sleep` that somebody started over SSH, for instance. It checks the link again right before each kill.
 */
export function startWarden(paths: BoxPaths, leash: Leash, removeBox: boolean): void {
	const pattern = leash.path.replaceAll(/[\\*?[\]]/g, '\\$&');
	const sweep = `
cat >/dev/null
for turn in 1 2 3; do
	for link in $(find /proc/[0-9]*/fd -maxdepth 1 -name 3 -lname "$1" 2>/dev/null); do
		pid=\${link#/proc/}; pid=\${pid%%/*}
		[ "$(readlink "/proc/$pid/fd/3")" = "$2" ] && kill -9 "$pid" 2>/dev/null
	done
	sleep 0.3
done
[ "$3" = remove ] && [ -f "$4/.relight-drill" ] && rm -rf -- "$4"
exit 0`;
	const warden = spawn(
		'/bin/sh',
		['-c', sweep, 'relight-drill', pattern, leash.path, removeBox ? 'remove' : 'keep', paths.root],
		{
			detached: true,
			cwd: '/',
			env: {PATH: '/usr/bin:/bin'},
			stdio: [leash.readEnd, 'ignore', 'ignore'],
		},
	);
	warden.unref();
}
