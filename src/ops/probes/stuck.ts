import type {Process} from './processes.ts';

/** Kernel functions in which a task waits for storage or a file server. */
const STORAGE_WAIT =
	/fuse|request_wait_answer|rpc_wait|nfs|ceph|rbd|jbd2|folio_wait|io_schedule|wait_on_bit|xfs_|cifs|smb/;

/**
 * Where the freezer of a v1 control group, or of a machine that sleeps, holds a task: it shows as D, and no I/O is due. From
 * Linux 6.1 on one that sleeps stays where it sleeps, in one of the waits that are never uninterruptible otherwise.
 */
const FREEZER = new RegExp(
	`^(${[
		'(__)?refrigerator',
		'(do|hrtimer)_nanosleep',
		'futex_wait(_queue|_queue_me|_multiple)?',
		'(do_epoll_wait|ep_poll)',
		'(do_sys_poll|do_poll|do_select|poll_schedule_timeout)(\\.constprop\\.\\d+)?',
		'do_sigtimedwait',
		'unix_stream_(data_wait|read_generic)',
	].join('|')})$`,
);

/** A v2 group freezes its tasks in S, where a signal still ends them. */
export const isFrozen = ({state, waitChannel}: Pick<Process, 'state' | 'waitChannel'>): boolean =>
	state === 'D' && FREEZER.test(waitChannel ?? '');

export const FROZEN = 'frozen by its control group: thaw that first';

/** Which of these even SIGKILL does not end now, and what would; null when none is such a one. */
export function heldBack(
	processes: readonly Pick<Process, 'pid' | 'state' | 'waitChannel' | 'killPending'>[],
): string | null {
	const frozen = processes.filter(isFrozen);
	const waiting = processes.filter(process => process.state === 'D' && process.killPending && !isFrozen(process));
	const pids = (each: typeof processes) => `pid ${each.map(({pid}) => pid).join(', ')}`;
	const words = [
		...(waiting.length > 0 ? [`${pids(waiting)} cannot die until its I/O returns`] : []),
		...(frozen.length > 0 ? [`${pids(frozen)} is ${FROZEN}`] : []),
	];
	return words.length > 0 ? words.join('; ') : null;
}

/** D is not enough (a task that waits for a dead FUSE server sleeps in S) and not needed: the wait channel tells. */
export const waitsForStorage = (process: Pick<Process, 'state' | 'waitChannel'>): boolean =>
	(process.state === 'D' && !isFrozen(process)) ||
	(process.state === 'S' && STORAGE_WAIT.test(process.waitChannel ?? ''));

/**
 * Since when (epoch ms) a task has been seen frozen, or waiting for storage, in the same place without using CPU; null when it moves.
 * The first sight counts from now; a wait channel learned later does not start it anew.
 */
export function stuckSince(before: Process | null, now: Process, nowMs: number): number | null {
	if (!waitsForStorage(now) && !isFrozen(now)) return null;
	if (!before || before.stuckSince === null || before.state !== now.state || before.cpuTicks !== now.cpuTicks)
		return nowMs;
	const elsewhere = before.waitChannel !== null && before.waitChannel !== now.waitChannel;
	return elsewhere ? nowMs : before.stuckSince;
}
