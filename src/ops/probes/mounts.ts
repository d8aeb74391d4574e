/** Every mount that is not a pseudo file system, in the kernel's order; over-mounts marked. From mountinfo: never blocks. */
export type MountFacts = {readonly mounts: readonly Mount[]; readonly missing: readonly string[]};

export type Mount = {
	/** Major:minor; the identity of the file system. */
	readonly device: string;
	readonly path: string;
	readonly root: string;
	readonly type: string;
	readonly source: string;
	readonly volatile: boolean;
	/** A later line covers this one. */
	readonly covered: boolean;
	/** `emergency` is ext4's read-only after an error, where options still say rw. */
	readonly writable: 'yes' | 'read-only mount' | 'read-only superblock' | 'emergency read-only';
	readonly size: MountSize;
	/** What is wrong with it against the configuration, in words; null when as expected or not expected at all. */
	readonly unexpected: string | null;
	readonly expected: boolean;
};

export type MountSize =
	| {
			readonly kind: 'answered';
			readonly totalBytes: number;
			readonly availableBytes: number;
			readonly inodes: number;
			readonly inodesFree: number;
	  }
	/** No answer within the limit; `since` is when the first look without an answer was made (epoch ms). */
	| {readonly kind: 'hung'; readonly since: number; readonly childPid: number | null; readonly childStartTicks: number | null}
	| {readonly kind: 'failed'; readonly says: string}
	| {readonly kind: 'not asked'};
