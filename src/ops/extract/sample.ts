import {randomBytes} from 'node:crypto';
import {finishStaged} from './adopt.ts';
import type {Client} from './client.ts';
import {type Written, writeBeside} from './commit.ts';
import {int64, type Sample} from './dataset.ts';
import {type DumpSource, type RawDump, removeDump, type StagedDump} from './dumps.ts';
import type {FileMark, FilePort} from './file-port.ts';
import type {FinalNorm} from './final-norm.ts';
import {samplePath} from './inventory.ts';
import type {JournalEntry} from './journal.ts';
import type {Extraction} from './layouts.ts';
import {idsHash} from './raw-dump.ts';
import {placesOf, planSample, samplePieces} from './sample-file.ts';
import type {Finish} from './staged-file.ts';
import {presentStates, type StateName, wrongStates} from './states.ts';

export type Asking = {
	readonly client: Client;
	readonly dumps: DumpSource;
	readonly norm: FinalNorm;
	readonly hiddenSize: number;
	/** Ends the request at once. */
	readonly abandon: AbortSignal;
	/** Why it is asked: `relight` extracts, `relight-check` compares. */
	readonly purpose: 'relight' | 'relight-check';
};

/** A staged file that was looked at, with what is left to do. */
export type FinishedDump = Omit<StagedDump, 'inspect' | 'read'> & {readonly finish: Finish};

export type Found = RawDump | FinishedDump;

export const heldStates = (dump: Found): StateName[] =>
	'states' in dump ? presentStates(dump.states).map(([name]) => name) : [...dump.holds];

/** The states of one sample, or an Error that says why what came is not to be stored. One request under a name of its own. */
export async function askForStates(sample: Sample, asking: Asking): Promise<Found> {
	const {index, inputIds} = sample;
	const tokens = inputIds.length;
	const rid = `${asking.purpose}-${index}-${randomBytes(6).toString('hex')}`;
	const places = placesOf(asking.norm.extraction, index, tokens);
	const find = asking.dumps.expect({rid, rows: tokens, ids: int64(inputIds), hiddenSize: asking.hiddenSize, places});
	const answer = await asking.client.generate(rid, inputIds, asking.abandon);
	if (answer.id !== rid) throw new Error(`the answer is for ${answer.id}, not for ${rid}`);
	if (answer.promptTokens !== tokens) throw new Error(`${answer.promptTokens} prompt tokens where ${tokens} were sent`);
	if (answer.cachedTokens < 0) throw new Error('the answer does not say how many tokens came from a cache');
	if (answer.cachedTokens !== 0)
		throw new Error(`${answer.cachedTokens} tokens came from a cache: their rows are missing`);
	const dump = await find();
	try {
		if (!('states' in dump) && asking.purpose === 'relight') return {...dump, finish: dump.inspect(sample)};
		const states = 'states' in dump ? dump.states : dump.read();
		const wrong = wrongStates(states);
		if (wrong !== null) throw new Error(wrong);
		return {paths: dump.paths, layers: dump.layers, states: asking.norm.named(states)};
	} catch (error) {
		// Ours beyond doubt, and of no use: its room is worth more.
		removeDump(dump);
		throw error;
	}
}

export type Stored = Extract<JournalEntry, {readonly proof: unknown}>;

/** A sample's file before it is written. */
export type SampleFile = {
	readonly path: string;
	/** Ready to be renamed to `path`; may be asked for again after a full disk. */
	readonly write: (files: FilePort) => Promise<Written>;
	/** What the journal is to say of it. */
	readonly lineOf: (mark: FileMark, crc32: number) => Stored;
};

export function sampleFile(extraction: Extraction, sample: Sample, dump: Found): SampleFile {
	const {index, inputIds} = sample;
	const plan = planSample(extraction, index, inputIds.length);
	const path = samplePath(extraction, index);
	return {
		path,
		write: files =>
			'states' in dump
				? writeBeside(files, path, plan.bytes, samplePieces(extraction, plan, sample, dump.states))
				: finishStaged(files, dump.staged, path, dump.finish.patches, {...plan, crc32: dump.finish.crc32}),
		lineOf: (mark, crc) => ({
			index,
			tokens: inputIds.length,
			...mark,
			proof: 'stored',
			crc32: crc.toString(16).padStart(8, '0'),
			ids: idsHash(int64(inputIds)),
			at: Date.now(),
		}),
	};
}
