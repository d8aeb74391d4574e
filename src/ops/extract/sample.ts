import {createHash, randomBytes} from 'node:crypto';
import {crc32} from 'node:zlib';
import type {ExtractionConfig} from '../target.ts';
import {planTorchFile, torchFile} from '../tensor/torch-file.ts';
import type {Client} from './client.ts';
import {commitFile} from './commit.ts';
import {int64, type Sample} from './dataset.ts';
import {type Dump, type DumpSource, removeDump} from './dumps.ts';
import type {FilePort} from './file-port.ts';
import {samplePath} from './inventory.ts';
import type {JournalEntry} from './journal.ts';
import {sampleTree} from './layouts.ts';
import {wrongStates} from './states.ts';

export type Asking = {
	readonly client: Client;
	readonly dumps: DumpSource;
	readonly hiddenSize: number;
	/** Ends the request at once. */
	readonly abandon: AbortSignal;
	/** Why it is asked: `relight` extracts, `relight-check` compares. */
	readonly purpose: 'relight' | 'relight-check';
};

/** The states of one sample, or an Error that says why what came is not to be stored. One request under a name of its own. */
export async function askForStates({index, inputIds}: Sample, asking: Asking): Promise<Dump> {
	const tokens = inputIds.length;
	const rid = `${asking.purpose}-${index}-${randomBytes(6).toString('hex')}`;
	const idsHash = createHash('sha256').update(int64(inputIds)).digest('hex');
	const find = asking.dumps.expect({rid, rows: tokens, idsHash, hiddenSize: asking.hiddenSize});
	const answer = await asking.client.generate(rid, inputIds, asking.abandon);
	if (answer.id !== rid) throw new Error(`the answer is for ${answer.id}, not for ${rid}`);
	if (answer.promptTokens !== tokens) throw new Error(`${answer.promptTokens} prompt tokens where ${tokens} were sent`);
	if (answer.cachedTokens < 0) throw new Error('the answer does not say how many tokens came from a cache');
	if (answer.cachedTokens !== 0)
		throw new Error(`${answer.cachedTokens} tokens came from a cache: their rows are missing`);
	const dump = await find();
	const wrong = wrongStates(dump.states);
	if (wrong === null) return dump;
	// Ours beyond doubt, and of no use: its room is worth more.
	removeDump(dump);
	throw new Error(wrong);
}

export type Stored = Extract<JournalEntry, {readonly proof: unknown}>;

/** Puts a sample's file in place; what it gives back belongs into the journal. Throws what the file system says. */
export function storeSample(
	files: FilePort,
	extraction: ExtractionConfig,
	{index, inputIds, lossMask}: Sample,
	states: readonly Buffer[],
): Stored {
	const tokens = inputIds.length;
	const plan = planTorchFile(`data_${index}`, sampleTree(extraction.layout, tokens, extraction.hiddenSize));
	const ids = int64(inputIds);
	const pieces = torchFile(plan, [ids, ...states, int64(lossMask)]);
	const mark = commitFile(files, samplePath(extraction, index), pieces);
	const crc = pieces.reduce((sum, piece) => crc32(piece, sum), 0);
	return {
		index,
		tokens,
		...mark,
		proof: 'stored',
		crc32: crc.toString(16).padStart(8, '0'),
		ids: createHash('sha256').update(ids).digest('hex'),
		at: Date.now(),
	};
}
