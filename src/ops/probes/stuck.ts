import type {Process} from './processes.ts';

/** Kernel functions in which a task waits for storage or a file server. */
const STORAGE_WAIT =
	/fuse|request_wait_answer|rpc_wait|nfs|ceph|rbd|jbd2|folio_wait|io_schedule|wait_on_bit|xfs_|cifs|smb/;

/** D is not enough (a task that waits for a dead FUSE server sleeps in S) and not needed: the wait channel tells. */
export const waitsForStorage = (process: Pick<Process, 'state' | 'waitChannel'>): boolean =>
	process.state === 'D' || (process.state === 'S' && STORAGE_WAIT.test(process.waitChannel ?? ''));

/**
 * Since when (epoch ms) a task has been seen waiting for storage in the same place without using CPU; null when it moves.
 * The first sight counts from now; a wait channel learned later does not start it anew.
 */
export function stuckSince(before: Process | null, now: Process, nowMs: number): number | null {
	if (!waitsForStorage(now)) return null;
	if (!before || before.stuckSince === null || before.state !== now.state || before.cpuTicks !== now.cpuTicks)
		return nowMs;
	const elsewhere = before.waitChannel !== null && before.waitChannel !== now.waitChannel;
	return elsewhere ? nowMs : before.stuckSince;
}
