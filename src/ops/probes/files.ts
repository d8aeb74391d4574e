/** Files that the work needs, asked for by path: is it there, is it whole, does it survive a boot. */
export type FilesFacts = {readonly files: readonly HostFile[]; readonly model: ModelFacts | null; readonly patch: PatchFacts | null};

export type HostFile = {
	readonly path: string;
	readonly role: 'script' | 'dataset' | 'model' | 'patch' | 'python' | 'other';
	readonly state: 'present' | 'gone' | 'differs' | 'no answer';
	readonly bytes: number | null;
	readonly sha256: string | null;
	readonly volatile: boolean;
};

export type ModelFacts = {readonly shards: number; readonly shardsExpected: number | null; readonly missing: readonly string[]};

/** Whether the dump patch's marker is in the source of the package. */
export type PatchFacts = {readonly path: string; readonly state: 'present' | 'absent' | 'no file'};
