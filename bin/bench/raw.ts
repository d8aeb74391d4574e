import {mkdirSync, mkdtempSync, renameSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {int64, type Sample} from '../../src/ops/extract/dataset.ts';
import {systemFiles} from '../../src/ops/extract/file-port.ts';
import {readRaw} from '../../src/ops/extract/raw-dump.ts';
import {giveBack} from '../../src/ops/extract/rows-memory.ts';
import {sampleFile} from '../../src/ops/extract/sample.ts';
import {placesOf} from '../../src/ops/extract/sample-file.ts';
import {presentStates, wrongStates} from '../../src/ops/extract/states.ts';
import type {ExtractionConfig} from '../../src/ops/target.ts';
import {atLeast, atMost, best, inTurn, say, type Turn} from './cost.ts';
import {giveDump, prepareDumps, type Size} from './instant-server.ts';
import {leastOf, pythonWith} from './python.ts';

const ROUNDS = 5;
const TURNS = 6;
const NAMES = ['aux_0', 'aux_1', 'aux_2', 'final_pre'] as const;

/**
 * What one file of 100 MB costs that is made of a raw dump in memory: read, every byte looked at, written for good. Beside
 * torch.save of the same tensors, which neither reads nor looks nor syncs.
 */
export async function raw(memory: string, extraction: ExtractionConfig, size: Size): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-raw-'));
	const dumps = mkdtempSync(join(memory, 'relight-bench-raw-'));
	try {
		const python = pythonWith('torch');
		if (!python) say('torch.save: not compared, no python3 with torch here');
		const save = () => leastOf(python ?? '', [SAVE, join(folder, 'saved.pt'), ...numbersOf(size)]);
		const own = ownTurn(folder, dumps, {...extraction, output: folder}, size);
		const costs = await inTurn(ROUNDS, {own, ...(python && {save})});
		const words = `least of ${ROUNDS} x ${TURNS}`;
		say(
			`one sample from ${memory}: ${costs.own.cpuMs.toFixed(1)} ms CPU, ${costs.own.wallMs.toFixed(1)} ms wall, ${words}`,
		);
		atMost('  .pt from a raw dump: CPU of a sample of 100 MB', costs.own.cpuMs, 'ms', 45);
		if (!costs.save) return;
		say(`torch.save of the same tensors, not synced: ${costs.save.cpuMs.toFixed(1)} ms CPU, ${words}`);
		atLeast('  .pt from a raw dump: times less CPU than torch.save', costs.save.cpuMs / costs.own.cpuMs, 'x', 1.6);
	} finally {
		for (const each of [folder, dumps]) rmSync(each, {recursive: true, force: true});
	}
}

const numbersOf = ({tokens, hiddenSize}: Size): string[] => [tokens, hiddenSize, TURNS].map(String);

function ownTurn(folder: string, dumps: string, extraction: ExtractionConfig, size: Size): Turn {
	prepareDumps(dumps, 1, size);
	const {tokens, hiddenSize} = size;
	const sample: Sample = {
		index: 0,
		inputIds: Array.from({length: tokens}, (_, at) => at + 1),
		lossMask: Array<number>(tokens).fill(1),
	};
	const rid = 'relight-0-bench';
	giveDump(dumps, 'prepared_0', rid, sample.inputIds, hiddenSize);
	const dump = join(dumps, `req_${rid}`);
	const run = async (): Promise<void> => {
		const wanted = {
			rid,
			rows: tokens,
			ids: int64(sample.inputIds),
			hiddenSize,
			places: placesOf(extraction, 0, tokens),
		};
		const found = readRaw(dump, wanted, NAMES);
		if (typeof found === 'number') throw new Error(`a dump of ${found} rows`);
		const wrong = wrongStates(found.states);
		if (wrong !== null) throw new Error(wrong);
		const file = sampleFile(extraction, sample, {...found, paths: [dump]});
		const {temporary} = await file.write(systemFiles);
		renameSync(temporary, file.path);
		await systemFiles.settleDirectory(folder);
		for (const [, rows] of presentStates(found.states)) giveBack(rows);
	};
	const {path} = sampleFile(extraction, sample, {paths: [], layers: null, states: {}});
	mkdirSync(join(path, '..'), {recursive: true});
	return () => best(run, TURNS, () => rmSync(path, {force: true}));
}

const SAVE = `
import torch
path, T, H = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sample = {'input_ids': torch.arange(T), 'loss_mask': torch.ones(T, dtype=torch.int64),
  'hidden_states': [torch.ones(T, H, dtype=torch.bfloat16) for _ in range(4)]}
turns(sys.argv[4], lambda: torch.save(sample, path), lambda: away(path))
`;
