import {createHash} from 'node:crypto';
import {mkdirSync, utimesSync, writeFileSync} from 'node:fs';
import {groupName, sampleTree} from '../extract/layouts.ts';
import {planTorchFile, torchFile} from '../tensor/torch-file.ts';
import {write} from './build-host.ts';
import type {BoxPaths} from './paths.ts';
import type {DatasetRecord, Dimensions} from './records.ts';
import {HIDDEN_SIZE, hiddenStates, LAYERS} from './states.ts';

export {HIDDEN_SIZE};

/** The old run wrote its last file three hours ago, one about every 0.9 s before that. */
const CRASH_AGO_S = 3 * 3600;

export type Sums = {readonly scriptSha256: string; readonly datasetSha256: string};

/** Dataset, output tree with its damage, logs, stale dumps, the good copy of the script. */
export function buildData(paths: BoxPaths, records: readonly DatasetRecord[], size: Dimensions): Sums {
	const dataset = `[\n${records.map(record => JSON.stringify(record)).join(',\n')}\n]\n`;
	write(paths.dataset, dataset);
	writeOutput(paths, records, size);
	writeLogs(paths, size);
	writeStaleDumps(paths, records, size);
	write(paths.goodScript, SCRIPT, 0o644);
	return {scriptSha256: sha256(SCRIPT), datasetSha256: sha256(dataset)};
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A whole sample file as the old run wrote it, in pieces. */
export function sampleFile(index: number, record: DatasetRecord): Buffer[] {
	const tokens = record.input_ids.length;
	const plan = planTorchFile(`data_${index}`, sampleTree('legacy', tokens, HIDDEN_SIZE));
	return torchFile(plan, [
		int64(record.input_ids),
		...Array.from({length: LAYERS}, (_, layer) => hiddenStates(record.input_ids, layer, HIDDEN_SIZE)),
		int64(record.loss_mask),
	]);
}

function int64(values: readonly number[]): Buffer {
	return Buffer.from(BigInt64Array.from(values, BigInt).buffer);
}

function writeOutput(paths: BoxPaths, records: readonly DatasetRecord[], size: Dimensions): void {
	const until = 9 * size.groupSize + size.lastGroup;
	const now = Date.now() / 1000;
	const holes = new Set(size.holes);
	for (let index = 0; index < until; index++) {
		const record = records[index];
		if (!record || holes.has(index)) continue;
		const directory = `${paths.output}/${groupName(index, size.groupSize)}`;
		if (index % size.groupSize === 0) mkdirSync(directory, {recursive: true});
		const path = `${directory}/data_${index}.pt`;
		const whole = Buffer.concat(sampleFile(index, record));
		const cut = size.truncated.indexOf(index);
		writeFileSync(path, cut < 0 ? whole : whole.subarray(0, cutAt(cut, whole.length)));
		const at = now - CRASH_AGO_S - (until - index) * 0.9;
		utimesSync(path, at, at);
	}
	const last = `${paths.output}/${groupName(until, size.groupSize)}`;
	write(`${last}/.data_${until}.pt.1391207.tmp`, Buffer.alloc(3_000, 7));
}

/** Cut in the directory, at a page, in the middle of the data, and nothing at all. */
const cutAt = (which: number, bytes: number): number =>
	[bytes - 30, Math.floor((bytes - 1) / 4096) * 4096, Math.floor(bytes / 2), 0][which] ?? 0;

function writeLogs(paths: BoxPaths, size: Dimensions): void {
	const files = 9 * size.groupSize + size.lastGroup;
	const lines = ['Loading dataset...', `Dataset: ${paths.dataset}`, `Output: ${paths.output}`, 'Server is healthy'];
	const seconds = 0.917;
	const step = Math.max(1, Math.floor(files / 180));
	for (let index = 5; index < files; index += step) {
		const eta = Math.round(((files * 2 - index) * seconds) / 60);
		const errors = size.holes.filter(hole => hole <= index).length;
		lines.push(
			`  [${index}] ${index - errors} extracted (${index - errors} total), 1.09 samples/s, 43 tok/s, req_time=0.9s, ETA: ${eta} min, errors: ${errors}, ~${(index * 2.3e-5).toFixed(1)} GB`,
		);
	}
	lines.push(
		`  [${files}] ${files - 3} extracted (${files - 3} total), 1.09 samples/s, 43 tok/s, req_time=1.1s, ETA: 29 min, errors: 3, ~${(files * 2.3e-5).toFixed(1)} GB`,
	);
	const text = `${lines.join('\n')}\n`;
	write(`${paths.logs}/extraction.log`, text);
	const at = Date.now() / 1000 - CRASH_AGO_S;
	utimesSync(`${paths.logs}/extraction.log`, at, at);
}

/** What the server of before the crash left in shared memory: a whole request, one without its last files, an empty one. */
function writeStaleDumps(paths: BoxPaths, records: readonly DatasetRecord[], size: Dimensions): void {
	// Probes, warm-up and retries count too; in a small box they are the greater part.
	const counter = Math.round((9 * size.groupSize + size.lastGroup) * 1.215) + 50;
	const ids = records[size.lastGroup]?.input_ids ?? [1, 2, 3, 4];
	const dump = (name: string, layers: readonly string[]): void => {
		const directory = `${paths.dumps}/${name}`;
		mkdirSync(directory, {recursive: true});
		for (const [layer, file] of layers.entries())
			writeFileSync(`${directory}/${file}.pt`, bareTensor(file, ids, layer));
		const at = Date.now() / 1000 - CRASH_AGO_S;
		utimesSync(directory, at, at);
	};
	dump(`req_${counter - 2}`, ['aux_0', 'aux_1', 'aux_2', 'final']);
	writeFileSync(`${paths.dumps}/req_${counter - 2}/done`, '');
	dump(`req_${counter - 1}`, ['aux_0', 'aux_1']);
	dump(`req_${counter}`, []);
}

/** One file of a dump: a tensor [T, H] and nothing around it. */
export function bareTensor(root: string, ids: readonly number[], layer: number): Buffer {
	const plan = planTorchFile(root, {kind: 'tensor', dtype: 'BF16', shape: [ids.length, HIDDEN_SIZE]});
	return Buffer.concat(torchFile(plan, [hiddenStates(ids, layer, HIDDEN_SIZE)]));
}

/** Only its name and its sum matter: what runs under this name in a box is the product's own extractor. */
const SCRIPT = `#!/usr/bin/env python3
"""Extract EAGLE-3 hidden states through a patched SGLang server (resumable)."""
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepared-data", required=True)
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--server-url", default="http://localhost:8000")
    parser.add_argument("--dump-dir", default="/dev/shm/sglang_hs")
    parser.add_argument("--max-seq-len", type=int, default=8192)
    parser.parse_args()


if __name__ == "__main__":
    main()
`;
