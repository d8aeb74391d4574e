import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync} from 'node:fs';
import {dirname} from 'node:path';
import {afterAll, beforeAll, describe, expect, test} from 'vitest';
import {readConfig} from '../../../src/ops/config/config.ts';
import {type Box, buildBox} from '../../../src/ops/drill/box.ts';
import {HIDDEN_SIZE, hiddenStates} from '../../../src/ops/drill/states.ts';
import {HOOK_SHA256} from '../../../src/ops/hook/own.ts';
import {serverDumps} from '../../../src/ops/hook/server-dumps.ts';
import {judgeHook} from '../../../src/ops/hook/verdict.ts';
import {type FilesFacts, files} from '../../../src/ops/probes/files.ts';
import {canary} from '../../../src/ops/server/canary.ts';
import {contextOf} from '../probes/support.ts';
import {cardsIdle, launchServer, progressOf, read, startRun} from './support/launch.ts';
import {bundle, PART_SOURCE} from './support/part-program.ts';
import {inBox, until} from './support/shell.ts';

const UNIT = 'vllm-kimi-k25-int4.service';
const TORCH = '/usr/bin/python3';
const hasTorch = spawnSync(TORCH, ['-c', 'import torch'], {stdio: 'ignore'}).status === 0;

let program: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
	program = await bundle(PART_SOURCE);
});
afterAll(() => program.remove());

describe.each([
	{name: 'a machine without a Python', pythonPath: [], skip: false, writer: /^a TypeScript writer of the same bytes/},
	{name: 'a Python with a torch', pythonPath: [dirname(TORCH)], skip: !hasTorch, writer: /^relight_hs\.py in torch \d/},
])('the hook in the drill, on $name', ({pythonPath, skip, writer}) => {
	let box: Box;
	beforeAll(async () => {
		if (skip) return;
		const options = {faults: ['hook'] as const, seed: 11, scale: 0.05, program: [process.execPath, program.file]};
		box = await buildBox({...options, pythonPath});
		await inBox(box, `systemctl stop ${UNIT} && systemctl disable ${UNIT}`);
		await cardsIdle(box);
	});
	afterAll(() => box?.close());

	const judged = async () => {
		const context = contextOf<FilesFacts>({target: box.target});
		const {stdout} = await inBox(box, files.script(context) ?? '');
		const {hook} = files.parse({status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)}, context);
		if (hook?.state !== 'seen') throw new Error(JSON.stringify(hook));
		return judgeHook(box.target, hook.facts, HOOK_SHA256);
	};

	test.skipIf(skip)('the configuration is the written one, with the flags that are printed for this version', () => {
		expect(readConfig(readFileSync(box.configFile, 'utf8'), box.configFile)).toEqual({ok: true, targets: [box.target]});
		expect(box.target.server?.env.SGLANG_HS_DUMP_DIR).toBeUndefined();
		expect(serverDumps(box.target.server ?? {args: []})).toEqual({kind: 'named', staging: null, layers: [2, 30, 58]});
	});

	test.skipIf(skip)(
		'without its file nothing would be dumped, and a server that is launched all the same ends',
		async () => {
			const {way, findings} = await judged();
			expect(way).toBe('none');
			expect(findings.map(({words}) => words)).toContain('relight_hs.py is not installed (relight hook install)');
			const log = await launchServer(box, 'early');
			await until(
				() => read(log),
				text => text.includes("No module named 'relight_hs'"),
			);
			await until(
				async () => (await inBox(box, 'systemctl show -p Result --value early')).stdout.trim(),
				result => result === 'exit-code',
			);
			expect(box.hookWriter()).toBeNull();
			await inBox(box, 'systemctl reset-failed early');
			await cardsIdle(box);
		},
	);

	test.skipIf(skip)(
		'with it five hooks a rank are registered, and the log says what runs them',
		async () => {
			mkdirSync(dirname(box.paths.hook), {recursive: true});
			copyFileSync(box.paths.goodHook, box.paths.hook);
			const {way, findings} = await judged();
			expect(way).toBe('forward hook');
			expect(findings.filter(({level}) => level === 'critical')).toEqual([]);
			const log = await launchServer(box, 'serving');
			const text = await until(
				() => read(log),
				all => all.includes('ready to roll!'),
				20_000,
			);
			expect(text.match(/ TP\d\] Registered forward hook 'relight_\w+' on language_model\.model/g)).toHaveLength(40);
			expect(box.hookWriter()).toMatch(writer);
			const rank = readdirSync(box.paths.proc).filter(pid =>
				read(`${box.paths.proc}/${pid}/cmdline`).includes('torch_model'),
			);
			expect(rank).toHaveLength(pythonPath.length);
			for (const pid of rank) expect(readlinkSync(`/proc/${pid}/fd/3`)).toBe(box.paths.leash);
			expect(text).toContain(`TP0] drill: hidden states are dumped by ${box.hookWriter()}\n`);
		},
		30_000,
	);

	test.skipIf(skip)('its canary is right', async () => {
		const {server} = box.target;
		if (!server) throw new Error('no server');
		const asked = {server, dumps: serverDumps(server), dumpDir: box.paths.dumps, hiddenSize: HIDDEN_SIZE};
		const {script, program: text} = canary({...asked, maxTokens: 128, id: 'c'});
		const seen = await inBox(box, `{ ${script}\n} <<'RELIGHT'\n${text}RELIGHT`);
		expect(seen.stdout).toMatch(
			pythonPath.length > 0
				? /128 of 128 rows of 5 states read.*final_post (0\.99|1\.00)/
				: /have their rows; no more was looked at/,
		);
		expect(seen.code).toBe(0);
	});

	test.skipIf(skip)('requests of one pass get each its own rows, to the bit', async () => {
		const lists = [[11, 22, 33], [44], Array.from({length: 100}, (_, at) => 1_000 + at)];
		const answers = await Promise.all(
			lists.map((ids, at) =>
				fetch(`http://127.0.0.1:${box.target.server?.port}/generate`, {
					method: 'POST',
					body: JSON.stringify({input_ids: ids, rid: `relight-${at}-own`}),
				}),
			),
		);
		expect(answers.map(({status}) => status)).toEqual([200, 200, 200]);
		for (const [at, ids] of lists.entries()) {
			const folder = `${box.paths.dumps}/req_relight-${at}-own`;
			for (const [layer, name] of ['aux_0', 'aux_1', 'aux_2', 'final_pre'].entries())
				expect(readFileSync(`${folder}/${name}.bin`).equals(hiddenStates(ids, layer, HIDDEN_SIZE))).toBe(true);
			expect(JSON.parse(readFileSync(`${folder}/meta.json`, 'utf8'))).toMatchObject({
				T: ids.length,
				module_sha256: HOOK_SHA256,
				versions: {sglang: '0.5.12'},
			});
		}
		await inBox(box, `rm -r ${box.paths.dumps}/req_relight-*`);
	});

	test.skipIf(skip)(
		'the extraction stores all that is missing, of named dumps, and leaves none',
		async () => {
			copyFileSync(box.paths.goodScript, box.paths.script);
			await startRun(box, 'first');
			const end = await until(
				() => progressOf(box),
				({state}) => state === 'finished' || state === 'failed',
				40_000,
			);
			expect(end).toMatchObject({state: 'finished', errors: 0});
			const score = await box.score({scripts: new Set(), signalled: new Set(), units: new Set([UNIT])});
			expect(score).toMatchObject({after: score.expected, lost: [], corrupt: [], holes: [], wrongKills: []});
			expect(readdirSync(box.paths.dumps).filter(name => name.startsWith('req_relight'))).toEqual([]);
		},
		60_000,
	);

	test.skipIf(skip)('the server ends, and what ran its hooks with it', async () => {
		await inBox(box, 'systemctl stop serving');
		const living = () =>
			readdirSync(box.paths.proc)
				.filter(name => /^\d+$/.test(name))
				.map(pid => read(`${box.paths.proc}/${pid}/cmdline`));
		await until(living, lines => !lines.some(line => line.includes('torch_model') || line.includes('launch_server')));
	});
});
