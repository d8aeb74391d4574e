import {dirname} from 'node:path';
import type {Written} from './commit.ts';
import {type FileMark, type FilePort, isFull} from './file-port.ts';
import type {Journal, JournalEntry} from './journal.ts';

/** So many files at most share one sync; as many do under load. */
const GROUP = 4;

type Renamed = {
	readonly directory: string;
	readonly entry: JournalEntry;
	readonly settled: (promised: boolean) => void;
	readonly failed: (error: unknown) => void;
};

/**
 * The last steps of storing, for several files at once. A file is renamed when its bytes are on the disk; then it waits
 * until GROUP of them do, or until nothing else is being written, and all of those share one sync of each directory
 * and one of the journal. So a slow stream never waits, and a fast one pays for the syncs once in a while.
 */
export class GroupCommit {
	private writing = 0;
	private renamed: Renamed[] = [];
	private busy = false;

	constructor(
		private readonly files: FilePort,
		private readonly journal: Journal,
		/** Waits for room after a full disk; false: stopped meanwhile. */
		private readonly afterFull: (error: unknown) => Promise<boolean>,
	) {}

	/**
	 * Resolves with the file's line once that is on the disk, null when a full disk kept it from the journal until the run was
	 * stopped. Rejects with what `write` or the file system says.
	 */
	async put<T extends JournalEntry>(
		path: string,
		write: () => Promise<Written>,
		lineOf: (mark: FileMark, crc32: number) => T,
	): Promise<T | null> {
		this.writing++;
		let line: T;
		let promised: Promise<boolean>;
		try {
			const {temporary, mark, crc32} = await write();
			this.files.rename(temporary, path);
			line = lineOf(mark, crc32);
			promised = this.wait(dirname(path), line);
		} finally {
			this.writing--;
			this.flush();
		}
		return (await promised) ? line : null;
	}

	private wait(directory: string, entry: JournalEntry): Promise<boolean> {
		return new Promise((settled, failed) => this.renamed.push({directory, entry, settled, failed}));
	}

	private flush(): void {
		if (this.busy || this.renamed.length === 0 || (this.renamed.length < GROUP && this.writing > 0)) return;
		const group = this.renamed;
		this.renamed = [];
		this.busy = true;
		void this.promise(group).finally(() => {
			this.busy = false;
			this.flush();
		});
	}

	private async promise(group: readonly Renamed[]): Promise<void> {
		try {
			const promised = await this.untilPromised(group);
			for (const {settled} of group) settled(promised);
		} catch (error) {
			for (const {failed} of group) failed(error);
		}
	}

	private async untilPromised(group: readonly Renamed[]): Promise<boolean> {
		for (;;) {
			try {
				// The names first: a journal must not know of a file that a power cut takes away.
				for (const directory of new Set(group.map(each => each.directory))) await this.files.settleDirectory(directory);
				await this.journal.addSoon(group.map(({entry}) => entry));
				return true;
			} catch (error) {
				if (!isFull(error)) throw error;
				if (!(await this.afterFull(error))) return false;
			}
		}
	}
}
