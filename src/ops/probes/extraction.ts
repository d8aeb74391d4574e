/** The output tree and the run that fills it. Counts come from files, never from the highest index or a log. */
export type ExtractionFacts = {
	readonly inventory: Inventory | null;
	readonly run: ExtractionRun | null;
	/** Entries of the dump directory, `req_*` only. */
	readonly dumps: readonly {readonly name: string; readonly modifiedAt: number; readonly bytes: number}[] | null;
	readonly script: 'present' | 'gone' | 'not configured';
};

export type Inventory = {
	readonly expected: number | null;
	/** Files under final names. */
	readonly present: number;
	/** Present and with an end record. */
	readonly complete: number;
	/** Indices below the highest present one that have no file. */
	readonly holes: readonly (readonly [from: number, to: number])[];
	readonly suspects: readonly {readonly index: number; readonly path: string; readonly reason: string}[];
	readonly groups: readonly InventoryGroup[];
	readonly bytes: number;
	readonly newestAt: number | null;
	readonly newestPath: string | null;
	readonly temporaries: number;
	readonly quarantined: number;
};

export type InventoryGroup = {
	readonly name: string;
	readonly from: number;
	readonly to: number;
	readonly modifiedAt: number;
	readonly present: number;
	readonly bytes: number;
	readonly newestAt: number | null;
	/** Files by index, kept so that a later look asks only for groups that changed. */
	readonly files: ReadonlyMap<number, {readonly bytes: number; readonly modifiedAt: number; readonly whole: boolean | null; readonly name: string}>;
};

export type ExtractionRun = {
	readonly source: 'progress' | 'script log';
	readonly state: 'starting' | 'verifying' | 'waiting for server' | 'extracting' | 'finished' | 'stopped' | 'failed' | 'silent';
	readonly pid: number | null;
	readonly startTicks: number | null;
	readonly alive: boolean | null;
	/** Extracted by this run alone; skips never count. */
	readonly extracted: number;
	readonly skipped: number | null;
	readonly errors: number;
	readonly tokens: number | null;
	readonly samplesPerSecond: number | null;
	readonly tokensPerSecond: number | null;
	readonly bytesPerSecond: number | null;
	readonly etaMs: {readonly low: number; readonly high: number} | null;
	readonly lastIndex: number | null;
	readonly updatedAt: number | null;
	readonly message: string | null;
};
