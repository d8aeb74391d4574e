import {closeSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {finishStaged} from '../../src/ops/extract/adopt.ts';
import {systemFiles} from '../../src/ops/extract/file-port.ts';
import {LAYOUTS} from '../../src/ops/extract/layouts.ts';
import {formPieces, planForm} from '../../src/ops/extract/sample-file.ts';
import {inspectStaged} from '../../src/ops/extract/staged-file.ts';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {fileSource} from '../../src/ops/tensor/source.ts';
import {descriptor, directory} from '../../src/ops/tensor/zip.ts';
import {atLeast, atMost, best, inTurn, say, type Turn} from './cost.ts';
import {hook} from './hook.ts';
import {leastOf, pythonWith} from './python.ts';
import {finiteNoise} from './samples.ts';

const TOKENS = 3_050;
const WIDTH = 4_096;
const ROUNDS = 5;
/** In each round: the first are slower, here and in torch, until all is compiled and mapped. */
const TURNS = 6;

/**
 * What a file of 100 MB that the hook has staged costs until it is in place, each byte of it looked at; beside torch.save. Both
 * take their turns one after the other and make a new file each time, for to take away an old one costs 5 ms; the least counts.
 */
export async function adopt(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-adopt-'));
	try {
		const crc = await preferNativeCrc();
		say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; not compared: @node-rs/crc32, not installed'}`);
		const torch = torchSave(folder);
		if (!torch) say('torch.save: not compared, no python3 with torch here');
		const {own, save} = await inTurn(ROUNDS, {own: ownTurn(folder), ...(torch && {save: torch})});
		const least = `least of ${ROUNDS} x ${TURNS}`;
		say(
			`adopt, every byte looked at, synced: ${own.cpuMs.toFixed(1)} ms CPU, ${own.wallMs.toFixed(1)} ms wall, ${least}`,
		);
		atMost('adopt: CPU of a staged sample of 100 MB', own.cpuMs, 'ms', 20, '17');
		if (crc === 'zlib') say('  (20 is for a native crc: zlib alone takes 22 on an idle core)');
		if (save) {
			say(`torch.save of the same tensors, not synced: ${save.cpuMs.toFixed(1)} ms CPU, ${least}`);
			atLeast('adopt: times less CPU than torch.save', save.cpuMs / own.cpuMs, 'x', 4);
		}
		await hook();
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}
}

function ownTurn(folder: string): Turn {
	const {form} = LAYOUTS.specforge;
	const plan = planForm(form, 'data_0', TOKENS, WIDTH);
	if (plan.container !== 'torch') throw new Error('a layout of torch files');
	const sample = {
		index: 0,
		inputIds: Array.from({length: TOKENS}, (_, at) => at + 1),
		lossMask: Array<number>(TOKENS).fill(1),
	};
	const whole = Buffer.concat([...formPieces(form, plan, sample, statesOf(), WIDTH)]);
	const {zip} = plan.torch;
	// As the hook leaves them: all sums are 0.
	for (const item of zip.items) descriptor(item, 0).copy(whole, item.dataOffset + item.bytes);
	directory(
		zip,
		zip.items.map(() => 0),
	).copy(whole, zip.directoryOffset);
	const staged = join(folder, 'staged.ready');
	const path = join(folder, 'data_0.ckpt');
	const run = async (): Promise<void> => {
		const fd = openSync(staged, 'r');
		const finish = inspectStaged(fileSource(fd), form, plan, sample, WIDTH);
		closeSync(fd);
		const written = await finishStaged(systemFiles, staged, path, finish.patches, {...plan, crc32: finish.crc32});
		renameSync(written.temporary, path);
		await systemFiles.settleDirectory(folder);
	};
	return () =>
		best(run, TURNS, () => {
			rmSync(path, {force: true});
			writeFileSync(staged, whole);
			const fd = openSync(staged, 'r+');
			systemFiles.sync(fd);
			closeSync(fd);
		});
}

function statesOf() {
	const made = (layer: number): Buffer => finiteNoise(TOKENS * WIDTH, layer);
	return {aux_0: made(0), aux_1: made(1), aux_2: made(2), final_post: made(3)};
}

const SAVE = `
import torch
path, T, H = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sample = {'input_ids': torch.arange(T), 'loss_mask': torch.ones(T, dtype=torch.int64),
  'hidden_state': torch.ones(1, T, H, dtype=torch.bfloat16), 'aux_hidden_state': torch.ones(1, T, 3 * H, dtype=torch.bfloat16)}
turns(sys.argv[4], lambda: torch.save(sample, path), lambda: away(path))
`;

/** Null without torch. */
function torchSave(folder: string): Turn | null {
	const python = pythonWith('torch');
	if (!python) return null;
	return () => leastOf(python, [SAVE, join(folder, 'saved.pt'), ...[TOKENS, WIDTH, TURNS].map(String)]);
}
