import {createHash, randomBytes} from 'node:crypto';
import {existsSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {crc32} from 'node:zlib';
import type {ExtractionConfig} from '../target.ts';
import {planTorchFile, torchFile} from '../tensor/torch-file.ts';
import {type Client, Refused, ServerAway} from './client.ts';
import {commitFile} from './commit.ts';
import type {Sample} from './dataset.ts';
import {type DumpPlace, dumpsNow, findDump, notFinite, removeDump} from './dumps.ts';
import {samplePath} from './inventory.ts';
import {sampleTree} from './layouts.ts';

/** This sample cannot be had; the reason is for people. The run goes on without it. */
export class SampleFailed extends Error {}

export type Stored = {readonly bytes: number; readonly crc: string; readonly idsHash: string};

const BACK_OFF_MS = [200, 1_000];

/**
 * One sample from request to stored file. A wrong answer is refused and asked for again under a new name; a third one
 * gives the sample up. Rejects with SampleFailed, ServerAway, or what the output's file system says.
 */
export async function extractSample(
	sample: Sample,
	extraction: ExtractionConfig,
	dumps: DumpPlace,
	client: Client,
): Promise<Stored> {
	for (let attempt = 0; ; attempt++) {
		try {
			const states = await requestStates(sample, extraction, dumps, client, attempt);
			const stored = store(sample, extraction, states.states);
			removeDump(states);
			return stored;
		} catch (error) {
			if (error instanceof ServerAway || !(error instanceof Error)) throw error;
			if (isDiskTrouble(error)) throw error;
			const wait = BACK_OFF_MS[attempt];
			if (error instanceof Refused || wait === undefined) throw new SampleFailed(error.message);
			await sleep(wait);
		}
	}
}

/** Storage that fails is not the sample's fault, and the next sample would meet it too. */
function isDiskTrouble(error: NodeJS.ErrnoException): boolean {
	return ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EACCES', 'EEXIST'].includes(error.code ?? '');
}

async function requestStates(
	sample: Sample,
	extraction: ExtractionConfig,
	dumps: DumpPlace,
	client: Client,
	attempt: number,
) {
	const tokens = sample.inputIds.length;
	const rid = `relight-${sample.index}-${attempt}-${randomBytes(4).toString('hex')}`;
	if (!existsSync(dumps.dir)) throw new Error(`the dump directory ${dumps.dir} is gone`);
	const before = dumpsNow(dumps.dir);
	const answer = await client.generate(rid, sample.inputIds);
	if (answer.id !== rid) throw new Error(`the answer is for ${answer.id}, not for ${rid}`);
	if (answer.promptTokens !== tokens) throw new Error(`${answer.promptTokens} prompt tokens where ${tokens} were sent`);
	if (answer.cachedTokens !== 0)
		throw new Error(`${answer.cachedTokens} tokens came from a cache: their rows are missing`);
	const dump = await findDump(dumps, before, tokens, extraction.hiddenSize);
	const layer = notFinite(dump.states);
	if (layer !== null) throw new Error(`NaN or infinity in layer ${layer}`);
	return dump;
}

function store({index, inputIds, lossMask}: Sample, extraction: ExtractionConfig, states: readonly Buffer[]): Stored {
	const plan = planTorchFile(`data_${index}`, sampleTree(extraction.layout, inputIds.length, extraction.hiddenSize));
	const ids = int64(inputIds);
	const pieces = torchFile(plan, [ids, ...states, int64(lossMask)]);
	const bytes = commitFile(samplePath(extraction, index), pieces);
	const crc = pieces.reduce((sum, piece) => crc32(piece, sum), 0);
	return {
		bytes,
		crc: crc.toString(16).padStart(8, '0'),
		idsHash: createHash('sha256').update(ids).digest('hex'),
	};
}

function int64(values: readonly number[]): Buffer {
	const bytes = Buffer.alloc(values.length * 8);
	for (const [at, value] of values.entries()) bytes.writeBigInt64LE(BigInt(value), at * 8);
	return bytes;
}
