import {statSync} from 'node:fs';
import {basename} from 'node:path';
import type {Dataset} from './dataset.ts';
import type {FileMark} from './file-port.ts';
import {keysOf} from './forms.ts';
import {sampleFiles, samplePath} from './inventory.ts';
import type {JournalEntry, JournalFacts, Proof} from './journal.ts';
import {type Extraction, layoutOf} from './layouts.ts';
import {Ledger} from './ledger.ts';
import {namedSamples} from './listing.ts';
import {Refusal} from './manifest.ts';
import {formIn, mixed} from './mirror.ts';
import {proveSample} from './prove.ts';

/** What was written so shortly before the end of a run that died may not have reached the disk. */
const RECENT_MS = 60 * 60_000;
/** So many whole files of other records are no accident: they belong to another dataset. */
const STRANGERS_AT_LEAST = 8;

export type Stock = {
	readonly ledger: Ledger;
	/** What the journal does not know yet. */
	readonly news: readonly JournalEntry[];
	/** How many were looked into, and how many of them in full. */
	readonly looked: number;
	readonly full: number;
};

type Present = {readonly index: number; readonly mark: FileMark};

/**
 * Where every sample stands. A file counts as done when the journal has seen exactly this file (size, time, inode), else
 * when a look into it finds nothing wrong. After an unclean end the files of the last hour before the newest are read in
 * full, journal or not; newest first always. Throws Refusal when the tree is not one of this dataset.
 */
export async function takeStock(
	extraction: Extraction,
	dataset: Dataset,
	journal: JournalFacts,
	beat: (looked: number, of: number) => Promise<void> | void = () => {},
): Promise<Stock> {
	const ledger = new Ledger();
	refuseMisplaced(extraction, dataset);
	const present = presentFiles(extraction, dataset, journal, ledger);
	const newestMs = present[0]?.mark.mtimeMs ?? 0;
	const news: JournalEntry[] = [];
	const foreign: {path: string; reason: string}[] = [];
	let looked = 0;
	let full = 0;
	for (const [at, {index, mark}] of present.entries()) {
		await beat(at, present.length);
		const tokens = dataset.tokens(index);
		const recent = !journal.clean && mark.mtimeMs >= newestMs - RECENT_MS;
		if (!recent && sameFile(journal.marks.get(index), mark)) {
			ledger.set(index, {state: 'done'});
			continue;
		}
		const doubt = journal.suspects.get(index);
		if (doubt && sameFile(doubt, mark)) {
			ledger.set(index, {state: 'suspect', reason: doubt.reason});
			continue;
		}
		looked++;
		if (recent) full++;
		const proof: Proof = recent ? 'full' : 'structure';
		const objection = proveSample(extraction, index, {tokens, idsDigest: dataset.digest(index)}, proof);
		if (objection === null) {
			ledger.set(index, {state: 'done'});
			if (!sameFile(journal.marks.get(index), mark)) news.push({...mark, index, tokens, proof, at: Date.now()});
		} else {
			ledger.set(index, {state: 'suspect', reason: objection.reason});
			news.push({...mark, index, suspect: objection.reason, at: Date.now()});
			if (objection.foreign) foreign.push({path: samplePath(extraction, index), reason: objection.reason});
		}
	}
	refuseMixed(extraction, foreign, ledger);
	refuseStrangers(extraction, foreign, present.length);
	return {ledger, news, looked, full};
}

/** Newest first. Puts down what has no file: absent, filtered, or failed in an earlier run. */
function presentFiles(extraction: Extraction, dataset: Dataset, {failures}: JournalFacts, ledger: Ledger): Present[] {
	const present: Present[] = [];
	const named = namedSamples(extraction.output, dataset.records);
	for (let index = 0; index < dataset.records; index++) {
		if (dataset.tokens(index) === 0) {
			ledger.set(index, {state: 'filtered'});
			continue;
		}
		const found = named[index] ? statSync(samplePath(extraction, index), {throwIfNoEntry: false}) : undefined;
		const failure = failures.get(index);
		if (found) present.push({index, mark: {bytes: found.size, mtimeMs: found.mtimeMs, inode: found.ino}});
		else ledger.set(index, failure ? {state: 'failed', ...failure} : {state: 'absent'});
	}
	return present.sort((one, other) => other.mark.mtimeMs - one.mark.mtimeMs || other.index - one.index);
}

/** A file that this configuration cannot have written says that another one did. */
function refuseMisplaced(extraction: Extraction, dataset: Dataset): void {
	const files = sampleFiles(extraction.output);
	const misplaced = files.find(({index, path}) => path !== samplePath(extraction, index));
	if (misplaced) {
		const right = samplePath(extraction, misplaced.index);
		const named = basename(right) === basename(misplaced.path);
		const why = named
			? `does not lie where ${layoutOf(extraction).flat ? 'a flat directory puts' : `groups of ${extraction.groupSize} put`} it`
			: `is no file of layout ${extraction.layout}, which would be ${basename(right)}`;
		throw new Refusal(`${misplaced.path} ${why}`);
	}
	const beyond = files.find(({index}) => index >= dataset.records);
	if (beyond) throw new Refusal(`${beyond.path} lies beyond the ${dataset.records} records of ${dataset.path}`);
}

/** A whole file of another form than the one that new files are given was not written by mistake. */
function refuseMixed(extraction: Extraction, foreign: Foreign, ledger: Ledger): void {
	const {output, mirrored, hiddenSize} = extraction;
	const [right] = ledger.having('done');
	if (!mirrored || right === undefined) return;
	for (const {path} of foreign) {
		const form = formIn(path, hiddenSize);
		if (form && keysOf(form) !== keysOf(mirrored.form))
			throw mixed(output, {path: samplePath(extraction, right), form: mirrored.form}, {path, form});
	}
}

/** Moving a good tree aside because the wrong dataset is configured would be the worst that this program could do. */
type Foreign = readonly {readonly path: string; readonly reason: string}[];

function refuseStrangers({output}: Extraction, foreign: Foreign, files: number): void {
	if (foreign.length <= Math.max(STRANGERS_AT_LEAST, files / 10)) return;
	const first = `${foreign[0]?.path}: ${foreign[0]?.reason}`;
	throw new Refusal(
		`${foreign.length} of ${files} files in ${output} are whole and of other records (${first}): not a tree of this dataset`,
	);
}

const sameFile = (known: FileMark | undefined, {bytes, mtimeMs, inode}: FileMark): boolean =>
	known?.bytes === bytes && known.mtimeMs === mtimeMs && known.inode === inode;
