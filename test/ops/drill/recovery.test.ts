import {copyFileSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {show} from '../../../src/ops/command.ts';
import {type Box, buildBox} from '../../../src/ops/drill/box.ts';
import {hiddenStates} from '../../../src/ops/drill/states.ts';
import {flagsInHelp} from '../../../src/ops/hook/package-flags.ts';
import {serverDumps} from '../../../src/ops/hook/server-dumps.ts';
import {canary} from '../../../src/ops/server/canary.ts';
import {httpScript} from '../../../src/ops/server/http.ts';
import {unknownFlags} from '../../../src/ops/server/protections.ts';
import {readBareTensor} from '../../../src/ops/tensor/torch-reader.ts';
import {cardsIdle, launchServer, type Progress, progressOf, read, startRun} from './support/launch.ts';
import {bundle, PART_SOURCE} from './support/part-program.ts';
import {inBox, until} from './support/shell.ts';

/** The box's own recovery by hand, in order: each test goes on from the one before. */
let program: Awaited<ReturnType<typeof bundle>>;
let box: Box;

beforeAll(async () => {
	program = await bundle(PART_SOURCE);
	box = await buildBox({seed: 11, scale: 0.05, program: [process.execPath, program.file]});
}, 30_000);
afterAll(async () => {
	await box.close();
	program.remove();
});

const server = () => box.target.server ?? Object.assign(Error('no server'));
const extraction = () => box.target.extraction ?? Object.assign(Error('no extraction'));

const launch = (unit: string): Promise<string> => launchServer(box, unit);
const progress = (): Progress => progressOf(box);
const startExtraction = (unit: string): Promise<void> => startRun(box, unit);

test('the server does not start while others hold the cards, and says why', async () => {
	const log = await launch('early');
	await until(
		() => read(log),
		text => text.includes('memory capacity is unbalanced'),
	);
	const state = async (): Promise<string> => (await inBox(box, 'systemctl show -p Result --value early')).stdout.trim();
	await until(state, text => text === 'exit-code');
	await inBox(box, 'systemctl reset-failed early');
	await inBox(box, 'systemctl stop vllm-kimi-k25-int4 && systemctl disable vllm-kimi-k25-int4');
	await cardsIdle(box);
}, 20_000);

test('its SGLang tells its flags when it is asked, and the launch has no other', async () => {
	const {stdout} = await inBox(box, `${box.target.server?.python} -m sglang.launch_server --help`);
	const flags = flagsInHelp(stdout);
	expect(flags).toContain('--tp-size');
	expect(unknownFlags(box.target.server?.args ?? [], {version: null, flags})).toEqual([]);
});

test('the real line brings it up in a few seconds, with the real phases', async () => {
	const log = await launch('serving');
	const text = await until(
		() => read(log),
		all => all.includes('The server is fired up and ready to roll!'),
		15_000,
	);
	const phases = [
		'server_args=ServerArgs(',
		'TP0] Init torch distributed begin.',
		'TP7] Init torch distributed ends.',
		'Load weight begin.',
		'\rLoading safetensors checkpoint shards: 100% Completed | 64/64',
		'Load weight end.',
		'KV Cache is allocated. #tokens:',
		'Memory pool end.',
		'max_total_num_tokens=',
		'Uvicorn running on http://0.0.0.0:',
		'Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0',
		'ready to roll!',
	];
	const places = phases.map(phase => text.indexOf(phase));
	expect(places.every((place, at) => place >= 0 && place > (places[at - 1] ?? -1))).toBe(true);
	const holders = await until(
		async () =>
			(await inBox(box, 'nvidia-smi --query-compute-apps=process_name,used_memory --format=csv,noheader,nounits'))
				.stdout,
		all => all.split('86020').length === 9,
	);
	expect(holders).toContain('sglang::scheduler_TP7, 86020\n');
}, 20_000);

test('it answers the console’s HTTP helper', async () => {
	expect(await inBox(box, httpScript(server(), 'GET', '/health', 5))).toMatchObject({code: 0, stdout: '200\n'});
	const info = await inBox(box, httpScript(server(), 'GET', '/server_info', 5));
	expect(JSON.parse(info.stdout.slice(4))).toMatchObject({model_path: server().model, disable_radix_cache: 'True'});
	const nobody = await inBox(box, httpScript({...server(), port: 1}, 'GET', '/health', 5));
	expect(nobody).toMatchObject({code: 7, stdout: 'refused\n'});
});

test('a request leaves a complete dump whose values follow from its ids', async () => {
	const ids = [11, 22, 33, 44, 55];
	const body = JSON.stringify({input_ids: ids, sampling_params: {max_new_tokens: 1, temperature: 0}, rid: 'mine'});
	const before = new Set(readdirSync(box.paths.dumps));
	const answer = await inBox(box, httpScript(server(), 'POST', '/generate', 5, body));
	expect(JSON.parse(answer.stdout.slice(4)).meta_info).toMatchObject({
		id: 'mine',
		prompt_tokens: 5,
		completion_tokens: 1,
		cached_tokens: 0,
	});
	const [dump = ''] = readdirSync(box.paths.dumps).filter(name => !before.has(name));
	expect(readdirSync(`${box.paths.dumps}/${dump}`).sort()).toEqual([
		'aux_0.pt',
		'aux_1.pt',
		'aux_2.pt',
		'done',
		'final.pt',
	]);
	expect(readBareTensor(`${box.paths.dumps}/${dump}/final.pt`)).toEqual({
		dtype: 'BF16',
		shape: [5, 64],
		data: hiddenStates(ids, 3, 64),
	});
});

test('it refuses flags it does not know, and a port that is taken', async () => {
	const {python, model, port} = server();
	const strange = await inBox(box, show([python, '-m', 'sglang.launch_server', '--model-path', model, '--nonsense']));
	expect(strange).toMatchObject({
		code: 2,
		stderr: expect.stringContaining('error: unrecognized arguments: --nonsense'),
	});
	const taken = await inBox(
		box,
		show([python, '-m', 'sglang.launch_server', '--model-path', model, '--port', String(port)]),
	);
	expect(taken).toMatchObject({code: 1, stdout: expect.stringContaining('It is used by a process already')});
});

test('the extraction does not run without its script', async () => {
	const {script} = extraction();
	const run = await inBox(box, show([server().python, script?.destination ?? '']));
	expect(run).toMatchObject({code: 2, stderr: expect.stringContaining('[Errno 2] No such file or directory')});
	copyFileSync(script?.source ?? '', script?.destination ?? '');
});

test('it resumes, stops as asked, and starts again where it stopped', async () => {
	await startExtraction('first');
	await until(progress, ({state, extracted}) => state === 'extracting' && extracted >= 8);
	const {pid, bootId} = progress();
	expect(bootId).toBe(readFileSync(`${box.paths.proc}/sys/kernel/random/boot_id`, 'utf8').trim());
	await until(
		() => readdirSync(box.paths.proc),
		names => names.includes(String(pid)),
	);
	expect(readFileSync(`${box.paths.proc}/${pid}/cmdline`, 'utf8').split('\0').slice(0, 2)).toEqual([
		server().python,
		extraction().script?.destination,
	]);
	await inBox(box, `kill ${pid}`);
	await until(progress, ({state}) => state === 'stopped');
	const score = await box.score({scripts: new Set(), signalled: new Set(), units: new Set()});
	expect(score).toMatchObject({lost: [], corrupt: [], after: score.before + progress().extracted});
}, 20_000);

test('a run that was killed in the middle is taken up, and all is stored in the end', async () => {
	await startExtraction('second');
	await until(progress, ({state, extracted}) => state === 'extracting' && extracted >= 5);
	const {pid} = progress();
	await inBox(box, `kill -9 ${pid}`);
	await until(
		() => readdirSync(box.paths.proc),
		names => !names.includes(String(pid)),
	);
	// What a writer leaves that dies between opening and renaming.
	writeFileSync(`${extraction().output}/rows_0-10/.data_3.pt.999.tmp`, 'half');
	await startExtraction('third');
	const end = await until(progress, ({state}) => state === 'finished', 30_000);
	expect(end.errors).toBe(0);
	const score = await box.score({
		scripts: new Set(),
		signalled: new Set(),
		units: new Set(['vllm-kimi-k25-int4.service']),
	});
	expect(score).toMatchObject({after: score.expected, lost: [], corrupt: [], holes: []});
	const aside = readdirSync(`${extraction().output}/quarantine`);
	expect(aside.filter(name => name.endsWith('.note.json')).length).toBeGreaterThanOrEqual(6);
	expect(read(extraction().log)).toMatch(
		/^ {2}\[\d+\] \d+ extracted \(\d+ total\), [\d.]+ samples\/s, \d+ tok\/s, req_time=[\d.]+s, ETA: \d+ min, errors: 0, ~[\d.]+ GB$/m,
	);
}, 60_000);

test('only foreign dumps are left: its own are gone, the stale ones were not touched', () => {
	const left = readdirSync(box.paths.dumps);
	expect(left.filter(name => /^req_1\d\d$/.test(name)).length).toBeGreaterThanOrEqual(3);
	expect(left.length).toBeLessThan(10);
});

test('its canary is right, read by the machine’s Python, and looked at without one', async () => {
	const asked = {
		server: server(),
		dumps: serverDumps(server()),
		dumpDir: box.paths.dumps,
		hiddenSize: 64,
		maxTokens: 128,
	};
	const fly = (id: string) => {
		const {script, program} = canary({...asked, id});
		return inBox(box, `{ ${script}\n} <<'RELIGHT'\n${program}RELIGHT`);
	};
	const note = `${box.paths.run}/machine-python.json`;
	const read = await fly('real');
	expect(read.stdout).toContain(
		`dumps are complete and right, and moved to ${box.paths.dumps}/.quarantine/canary-real\n`,
	);
	expect(read.stdout).toMatch(/canary of 128 tokens: 128 of 128 rows of 4 states read; .* final is pre-norm/);
	expect(JSON.parse(readFileSync(note, 'utf8')).path).toMatch(/python3$/);
	writeFileSync(note, 'null');
	const seen = await fly('plain');
	expect(seen).toMatchObject({
		code: 0,
		stdout: expect.stringContaining('no more was looked at, without a Python here'),
	});
	expect(readdirSync(`${box.paths.dumps}/.quarantine/canary-plain`).filter(name => name.includes('done'))).toHaveLength(
		2,
	);
});

test('TERM ends the server and its children', async () => {
	const {stdout} = await inBox(box, 'systemctl stop serving; systemctl show -p LoadState --value serving');
	expect(stdout.trim()).toBe('not-found');
	await until(
		() =>
			readdirSync(box.paths.proc)
				.filter(name => /^\d+$/.test(name))
				.map(pid => read(`${box.paths.proc}/${pid}/comm`)),
		names => !names.some(name => name.startsWith('sglang')),
	);
	const {wrongKills} = await box.score({
		scripts: new Set(),
		signalled: new Set(),
		units: new Set(['vllm-kimi-k25-int4.service', 'serving.service']),
	});
	expect(wrongKills).toEqual([expect.stringContaining('SIGKILL')]);
});
