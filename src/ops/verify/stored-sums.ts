import {dirname, resolve} from 'node:path';
import {readJournal, type StoredMark} from '../extract/journal.ts';
import type {CheckedFile} from './check-file.ts';
import {sampleIndex} from './names.ts';
import {type Identity, suspect, type Verdict} from './verdict.ts';

/** What the extractor's journal beside a tree says of the files that it stored: sums, for containers that have none. */
export class StoredSums {
	private readonly marks: ReadonlyMap<number, StoredMark>;

	constructor(tree: string) {
		this.marks = readJournal(`${dirname(resolve(tree))}/extraction-journal.ndjson`).marks;
	}

	/**
	 * The verdict on a file without checksums once its sum is compared. A file that is the one of the journal by size, time
	 * and inode has to have its sum; a copy, of which only the size is known, is right if it has it, and else cannot be told.
	 */
	judge({path, identity, verdict, sum}: CheckedFile): Verdict {
		const mark = this.marks.get(sampleIndex(path.slice(path.lastIndexOf('/') + 1)) ?? -1);
		const open =
			verdict.verdict === 'done' || (verdict.verdict === 'unverifiable' && verdict.reason === 'no checksums');
		if (sum === undefined || !open || mark?.crc32 === undefined || mark.bytes !== identity.bytes) return verdict;
		if (Number.parseInt(mark.crc32, 16) === sum) return {verdict: 'done'};
		if (isSame(mark, identity)) return suspect('checksum', 'its bytes are not the ones that were stored');
		return {verdict: 'unverifiable', reason: 'no checksums', words: 'its sum is not that of the file that was stored'};
	}
}

const isSame = (mark: Identity, {mtimeMs, inode}: Identity): boolean =>
	mark.mtimeMs === mtimeMs && mark.inode === inode;
