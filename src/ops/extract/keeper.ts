import {statSync} from 'node:fs';
import type {ExtractionConfig} from '../target.ts';
import {quarantine} from './commit.ts';
import {type FileMark, type FilePort, isFull} from './file-port.ts';
import {GroupCommit} from './group-commit.ts';
import {samplePath} from './inventory.ts';
import type {Journal} from './journal.ts';
import type {Room} from './room.ts';
import type {SampleFile, Stored} from './sample.ts';

/** What happens to files of the tree, each time with its line in the journal. Throws what the file system says. */
export class Keeper {
	private readonly commits: GroupCommit;

	constructor(
		private readonly extraction: ExtractionConfig,
		private readonly files: FilePort,
		private readonly journal: Journal,
		private readonly room: Room,
	) {
		this.commits = new GroupCommit(files, journal, error => this.afterFull(error));
	}

	/**
	 * Resolves when the file is in place and in the journal, both on the disk. A disk that is full is waited for with the
	 * states in hand; null: stopped meanwhile. Several may be under way at once. `inPlace`: the states are needed no more.
	 */
	async put(file: SampleFile, inPlace: () => void): Promise<Stored | null> {
		const {path, write} = file;
		const lineOf = (mark: FileMark, crc32: number): Stored => {
			inPlace();
			return file.lineOf(mark, crc32);
		};
		for (;;) {
			try {
				return await this.commits.put(path, () => write(this.files), lineOf);
			} catch (error) {
				if (!isFull(error)) throw error;
				if (!(await this.afterFull(error))) return null;
			}
		}
	}

	private afterFull(error: unknown): Promise<boolean> {
		return this.room.afterFull(`the disk is full (${error instanceof Error ? error.message : error})`);
	}

	/** So that a lighter look in a later run does not clear it. */
	suspect(index: number, reason: string): void {
		const {size: bytes, mtimeMs, ino: inode} = statSync(samplePath(this.extraction, index));
		this.journal.add({index, bytes, mtimeMs, inode, suspect: reason, at: Date.now()});
	}

	/** Where the suspect lies now. */
	setAside(index: number, reason: string): string {
		const place = quarantine(this.files, this.extraction.output, samplePath(this.extraction, index), reason);
		this.journal.add({index, quarantined: place, reason, at: Date.now()});
		return place;
	}

	failed(index: number, times: number, reason: string): void {
		this.journal.add({index, failed: reason, times, at: Date.now()});
	}
}
