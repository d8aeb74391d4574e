import type {Known} from './probe.ts';

/**
 * Who holds GPU memory: what the driver lists (compute-apps) and who has /dev/nvidia* open ($PROC/N/fd links), side by
 * side. `startTicks` null: the pid is not in this pid namespace or gone, so it must never be signalled from here.
 */
export type HolderFacts = {
	readonly bootId: string;
	readonly holders: readonly Holder[];
	/** The driver lists no process although the panel is empty rather than "none": pids exist that cannot be resolved. */
	readonly driverList: 'listed' | 'none' | 'unresolvable';
};

export type Holder = {
	readonly pid: number;
	readonly startTicks: number | null;
	/** One entry per card the driver charges to this pid. */
	readonly memory: readonly {readonly gpuUuid: string; readonly usedBytes: Known<number>}[];
	/** Device nodes open, as names below $DEV (`nvidia0`, `nvidiactl`). Empty when only the driver names this pid. */
	readonly devices: readonly string[];
	/** As the driver prints it; '' when only device links show it. */
	readonly driverName: string;
};
