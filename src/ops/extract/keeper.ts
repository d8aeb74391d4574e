import {statSync} from 'node:fs';
import type {ExtractionConfig} from '../target.ts';
import {quarantine} from './commit.ts';
import type {Sample} from './dataset.ts';
import {type FilePort, isFull} from './file-port.ts';
import {samplePath} from './inventory.ts';
import type {Journal} from './journal.ts';
import type {Room} from './room.ts';
import {type Stored, storeSample} from './sample.ts';

/** What happens to files of the tree, each time with its line in the journal. Throws what the file system says. */
export class Keeper {
	constructor(
		private readonly extraction: ExtractionConfig,
		private readonly files: FilePort,
		private readonly journal: Journal,
		private readonly room: Room,
	) {}

	/** In place and in the journal. A disk that is full is waited for with the states in hand; null: stopped meanwhile. */
	async put(sample: Sample, states: readonly Buffer[]): Promise<Stored | null> {
		for (;;) {
			try {
				const stored = storeSample(this.files, this.extraction, sample, states);
				this.journal.add(stored);
				return stored;
			} catch (error) {
				if (!isFull(error)) throw error;
				const words = error instanceof Error ? error.message : String(error);
				if (!(await this.room.afterFull(`the disk is full (${words})`))) return null;
			}
		}
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
