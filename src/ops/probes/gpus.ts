import type {Known} from './probe.ts';

/** Cards in the driver's order. `lost` cards are those the tool could only name in a sentence: they have no numbers. */
export type GpuFacts = {
	readonly cards: readonly Gpu[];
	readonly lost: readonly LostGpu[];
};

export type Gpu = {
	readonly index: number;
	readonly uuid: string;
	/** Normalised: lower case, no zero domain, no function: `0b:00`. */
	readonly busId: string;
	readonly name: string;
	readonly memoryTotalBytes: Known<number>;
	readonly memoryUsedBytes: Known<number>;
	/** Unified-memory boards: memory is the system's (`memory…` then holds meminfo's total and total − available). */
	readonly sharedMemory: boolean;
	readonly busyPercent: Known<number>;
	readonly temperatureCelsius: Known<number>;
	readonly slowdownCelsius: Known<number>;
	readonly powerWatts: Known<number>;
	readonly powerCapWatts: Known<number>;
	readonly smClockMhz: Known<number>;
	readonly pcieGeneration: Known<number>;
	readonly pcieGenerationMax: Known<number>;
	readonly pcieWidth: Known<number>;
	readonly pcieWidthMax: Known<number>;
	readonly eccUncorrected: Known<number>;
	readonly mig: Known<boolean>;
	readonly persistence: Known<boolean>;
	/** Active reasons in words, idle and none left out. */
	readonly throttle: Known<readonly string[]>;
	/** Card says it needs a reset: never offered for a launch, its unknown memory is not free memory. */
	readonly needsReset: boolean;
};

export type LostGpu = {readonly busId: string; readonly says: string; readonly advice: string};
