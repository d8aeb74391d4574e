/** relight's own writer as a program, for the tests that compare it with torch and with the hook. JSON on standard input. */
import {readFileSync, writeFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {hookPlace, hookSpecs} from '../../src/ops/hook/launch-flags.ts';
import type {ModelShape} from '../../src/ops/hook/look.ts';
import type {Tree} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';

type Task =
	| {readonly task: 'specs'; readonly model: ModelShape; readonly writer: Readonly<Record<string, unknown>>}
	| {readonly task: 'write'; readonly root: string; readonly tree: Tree; readonly data: string[]; readonly out: string}
	| {readonly task: 'fill-crcs'; readonly root: string; readonly tree: Tree; readonly file: string};

const task: Task = JSON.parse(readFileSync(0, 'utf8'));

if (task.task === 'specs') {
	process.stdout.write(JSON.stringify(hookSpecs(hookPlace(task.model), task.writer)));
} else if (task.task === 'write') {
	const plan = planTorchFile(task.root, task.tree);
	const data = task.data.map(path => readFileSync(path));
	writeFileSync(task.out, Buffer.concat(torchFile(plan, data)));
} else {
	fillCrcs(task.file, planTorchFile(task.root, task.tree));
}

/** Both places of each entry's CRC: the descriptor behind its data, and the directory. */
function fillCrcs(path: string, {zip}: ReturnType<typeof planTorchFile>): void {
	const file = readFileSync(path);
	let entry = zip.directoryOffset;
	for (const item of zip.items) {
		const crc = crc32(file.subarray(item.dataOffset, item.dataOffset + item.bytes));
		file.writeUInt32LE(crc, item.end - 12);
		file.writeUInt32LE(crc, entry + 16);
		entry += 46 + Buffer.byteLength(item.name);
	}
	writeFileSync(path, file);
}
