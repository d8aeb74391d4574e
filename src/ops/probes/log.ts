/** Tail of one log on the host. `inode` and `offsetBytes` make the next look ask only for what is new. */
export type LogFacts = {
	readonly path: string;
	readonly state: 'ok' | 'absent' | 'denied';
	readonly inode: string | null;
	readonly offsetBytes: number;
	/** Newest last; carriage-return progress folded to its last state; raw text, neutralise before drawing. */
	readonly lines: readonly string[];
	readonly modifiedAt: number | null;
};
