/** Findings in the kernel's log, oldest first, equal ones folded. */
export type KernelLogFacts = {
	/** `denied`: dmesg is restricted and no journal answered. `unavailable`: neither tool is there. */
	readonly source: 'dmesg' | 'journal' | 'denied' | 'unavailable';
	readonly findings: readonly KernelFinding[];
	/** Where the next look starts. */
	readonly cursor: string | null;
};

export type KernelFinding = {
	readonly kind: 'xid' | 'oom-kill' | 'hung-task' | 'io-error' | 'read-only' | 'storage-full' | 'segfault';
	/** Epoch ms if the log tells wall time, else seconds since boot in `sinceBoot`. */
	readonly at: number | null;
	readonly sinceBootSeconds: number | null;
	readonly count: number;
	readonly text: string;
	readonly busId: string | null;
	readonly xid: number | null;
	readonly pid: number | null;
	readonly advice: string;
};
