/** relight's own writer as a program, for the tests that compare it with torch and with the hook. JSON on standard input. */
import {readFileSync, writeFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {
	HOOK_STATES,
	type HookStates,
	HookWriter,
	type WriterConfig,
	type WriterFacts,
} from '../../src/ops/drill/parts/hook-writer.ts';
import {int64, type Sample} from '../../src/ops/extract/dataset.ts';
import {DumpWatch} from '../../src/ops/extract/dump-watch.ts';
import {systemFiles} from '../../src/ops/extract/file-port.ts';
import {FinalNorm} from '../../src/ops/extract/final-norm.ts';
import {type Extraction, LAYOUTS, type LayoutName} from '../../src/ops/extract/layouts.ts';
import {sampleFile} from '../../src/ops/extract/sample.ts';
import {formPieces, planForm} from '../../src/ops/extract/sample-file.ts';
import {stagedDumps} from '../../src/ops/extract/staged-dumps.ts';
import {stagingOf} from '../../src/ops/extract/staging.ts';
import type {StateName} from '../../src/ops/extract/states.ts';
import {hookPlace, hookSpecs} from '../../src/ops/hook/launch-flags.ts';
import type {ModelShape} from '../../src/ops/hook/look.ts';
import type {Tree} from '../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../src/ops/tensor/torch-file.ts';

type Task =
	| {readonly task: 'specs'; readonly model: ModelShape; readonly writer: Readonly<Record<string, unknown>>}
	| {readonly task: 'write'; readonly root: string; readonly tree: Tree; readonly data: string[]; readonly out: string}
	| {
			readonly task: 'sample';
			readonly layout: LayoutName;
			readonly sample: Sample;
			readonly hiddenSize: number;
			/** Raw rows by state. */
			readonly states: Readonly<Partial<Record<StateName, string>>>;
			readonly out: string;
	  }
	| {
			readonly task: 'hook-pass';
			readonly config: WriterConfig;
			readonly facts: Omit<WriterFacts, 'now'> & {readonly now: number};
			readonly requests: readonly {readonly rid: string; readonly ids: number[]; readonly states: string[]}[];
	  }
	| {
			readonly task: 'adopt';
			readonly layout: LayoutName;
			readonly sample: Sample;
			readonly hiddenSize: number;
			readonly output: string;
			readonly dumps: string;
			readonly rid: string;
	  }
	| {readonly task: 'fill-crcs'; readonly root: string; readonly tree: Tree; readonly file: string};

const task: Task = JSON.parse(readFileSync(0, 'utf8'));

if (task.task === 'specs') {
	process.stdout.write(JSON.stringify(hookSpecs(hookPlace(task.model), task.writer)));
} else if (task.task === 'write') {
	const plan = planTorchFile(task.root, task.tree);
	const data = task.data.map(path => readFileSync(path));
	writeFileSync(task.out, Buffer.concat(torchFile(plan, data)));
} else if (task.task === 'sample') {
	writeSample(task);
} else if (task.task === 'adopt') {
	process.stdout.write(await adoptSample(task));
} else if (task.task === 'hook-pass') {
	const writer = new HookWriter(task.config, {...task.facts, now: () => task.facts.now});
	writer.pass(task.requests.map(({rid, ids, states}) => ({rid, ids, states: statesFrom(states)})));
} else {
	fillCrcs(task.file, planTorchFile(task.root, task.tree));
}

/** As the extractor stores it: the layout's own form, from raw states. */
function writeSample({layout, sample, hiddenSize, states, out}: Extract<Task, {readonly task: 'sample'}>): void {
	const read = Object.entries(states).map(([name, path]) => [name, readFileSync(path)]);
	const {form, prefix} = LAYOUTS[layout];
	const plan = planForm(form, `${prefix}${sample.index}`, sample.inputIds.length, hiddenSize);
	writeFileSync(out, Buffer.concat([...formPieces(form, plan, sample, Object.fromEntries(read), hiddenSize)]));
}

/** As the extractor adopts what the hook staged: checked, finished and renamed. Prints where it is. */
async function adoptSample(task: Extract<Task, {readonly task: 'adopt'}>): Promise<string> {
	const {layout, sample, hiddenSize, output, dumps, rid} = task;
	const extraction = {output, layout, hiddenSize, groupSize: 2_000} as Extraction;
	const source = stagedDumps(
		{dir: dumps, limitMs: 0, watch: new DumpWatch([])},
		stagingOf(output),
		new FinalNorm(extraction, null),
	);
	const ids = int64(sample.inputIds);
	const dump = await source.expect({rid, rows: sample.inputIds.length, ids, hiddenSize})();
	if (!('staged' in dump)) throw new Error('nothing is staged');
	const file = sampleFile(extraction, sample, {...dump, finish: dump.inspect(sample)});
	const {temporary} = await file.write(systemFiles);
	systemFiles.rename(temporary, file.path);
	return file.path;
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

function statesFrom(paths: readonly string[]): HookStates {
	const states = HOOK_STATES.map((name, at) => [name, readFileSync(paths[at] ?? '')]);
	return Object.fromEntries(states) as HookStates;
}
