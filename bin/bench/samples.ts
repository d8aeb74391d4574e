import {closeSync, openSync, writevSync} from 'node:fs';
import {join} from 'node:path';
import {type Tree, tensor} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';

export type Samples = {readonly paths: readonly string[]; readonly bytes: number};

/** Files in SpecForge's layout; finite values that differ from place to place. */
export function makeSamples(folder: string, files: number, tokens: number, width: number): Samples {
	const tree: Tree = {
		kind: 'dict',
		entries: [
			['input_ids', tensor('I64', [tokens])],
			['loss_mask', tensor('I64', [tokens])],
			['hidden_state', tensor('BF16', [1, tokens, width])],
			['aux_hidden_state', tensor('BF16', [1, tokens, 3 * width])],
		],
	};
	const ids = Buffer.from(BigInt64Array.from({length: tokens}, (_, at) => BigInt(at + 1)).buffer);
	const aux = finiteNoise(tokens * 3 * width);
	const data = [ids, ids, aux.subarray(aux.length - tokens * width * 2), aux];
	const paths: string[] = [];
	let bytes = 0;
	for (let index = 0; index < files; index++) {
		const path = join(folder, `data_${index}.ckpt`);
		const plan = planTorchFile(`data_${index}`, tree);
		const fd = openSync(path, 'w');
		for (const piece of torchFile(plan, data)) writevSync(fd, [piece]);
		closeSync(fd);
		paths.push(path);
		bytes += plan.bytes;
	}
	return {paths, bytes};
}

/** So many values of bf16, no NaN and no infinity among them; each `layer` has others. */
export function finiteNoise(count: number, layer = 0): Buffer {
	const values = new Uint16Array(count);
	for (let at = 0; at < count; at++) values[at] = 0x3c00 + layer + (Math.imul(at, 2_654_435_761) >>> 23);
	return Buffer.from(values.buffer);
}
