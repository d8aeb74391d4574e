import {Complaint} from '../outcome.ts';

const MOST_PIDS = 48;

/**
 * Shell that runs `script` unless one of `pids` (uninterruptible when last seen) still is, and is this very tool: a driver
 * that swallowed one query swallows the next as well, and every try would leave one more process behind. Status 75. Few
 * pids on purpose: sh reads a file byte by byte.
 */
export function unlessStuck(tool: string, pids: readonly number[], script: string): string {
	if (pids.length === 0) return script;
	return [
		`for p in ${pids.slice(0, MOST_PIDS).join(' ')}; do`,
		`{ read -r l <"$PROC/$p/stat"; } 2>/dev/null && case $l in *'(${tool}) D '*) echo "stuck $p"; exit 75 ;; esac`,
		'done',
		script,
	].join('\n');
}

/** For whoever asked the driver and was kept from it by its own query of before. */
export const stillStuck = (pid: number): Complaint =>
	new Complaint(
		'nvidia-smi',
		`an earlier query (pid ${pid}) is still stuck in the driver`,
		'no second one is started; read the kernel log for Xid 45, 119 or 120; the stuck one ends when the driver answers',
	);

/** The pid of the stuck tool, when that is why nothing was asked. */
export function stuckPid(status: number, stdout: string): number | null {
	const pid = status === 75 ? /^stuck (\d+)$/m.exec(stdout)?.[1] : undefined;
	return pid === undefined ? null : Number(pid);
}
