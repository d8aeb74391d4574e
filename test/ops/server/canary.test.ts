import {spawn, spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, mkdirSync, readdirSync, writeFileSync} from 'node:fs';
import {afterEach, describe, expect, it} from 'vitest';
import type {ServerDumps} from '../../../src/ops/hook/server-dumps.ts';
import {canary} from '../../../src/ops/server/canary.ts';
import {CANARY_SHA256, canaryIds, canaryTokens} from '../../../src/ops/server/canary-tokens.ts';
import {tensor} from '../../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../../src/ops/tensor/torch-file.ts';
import {
	goodDump,
	idsHash,
	modelServer,
	packed,
	type RawDump,
	type Request,
	STATES,
	statesOf,
	WIDTH,
	writeModel,
	writeRaw,
} from './support/model-server.ts';

const NAMED: ServerDumps = {kind: 'named', staging: null, layers: [2, 30, 58]};
const COUNTED: ServerDumps = {kind: 'counted', staging: null, layers: null};
/** As the reference measures it: about 1 behind the norm, tens before it. */
const NORMS = String.raw`norm: final_post (0\.99|1\.00)\d-(0\.99|1\.00)\d, final_pre \d\d\.\d+-\d\d\.\d+`;
const PYTHON = spawnSync('python3', ['-c', '']).status === 0;

let served: Awaited<ReturnType<typeof modelServer>> | null = null;
afterEach(async () => {
	await served?.close();
	served = null;
});

/** The step of a launch, run as it stands: its script in a shell, its program on standard input. */
async function fly(
	dump: (request: Request, root: string) => void,
	{
		dumps = NAMED,
		weights = true,
		answer,
	}: {dumps?: ServerDumps; weights?: boolean; answer?: NonNullable<typeof served>['answer']['change']} = {},
) {
	served = await modelServer(request => dump(request, served?.root ?? ''));
	const {root, port} = served;
	if (answer) served.answer.change = answer;
	if (weights) writeModel(`${root}/model`);
	mkdirSync(`${root}/dumps`, {recursive: true});
	const staging = dumps.staging === null ? null : `${root}/staging`;
	const {script, program} = canary({
		server: {python: 'python3', port, model: `${root}/model`},
		dumps: {...dumps, staging},
		dumpDir: `${root}/dumps`,
		hiddenSize: WIDTH,
		maxTokens: 40,
		id: 'l1',
	});
	const hasty = script.replace('"dumpSeconds":10', '"dumpSeconds":0.3');
	expect(hasty).not.toBe(script);
	return new Promise<{code: number | null; lines: string[]; root: string}>(resolve => {
		const child = spawn('/bin/sh', ['-c', hasty], {stdio: 'pipe'});
		let said = '';
		for (const stream of [child.stdout, child.stderr])
			stream.on('data', piece => {
				said += piece;
			});
		child.on('close', code => resolve({code, lines: said.trim().split('\n'), root}));
		child.stdin.end(program);
	});
}

/** Dumps as the hook makes them, with something changed in those of one length or of both. */
const raw =
	(change: (dump: RawDump, request: Request) => void = () => {}, which: 'short' | 'long' | 'both' = 'both') =>
	(request: Request, root: string) => {
		const dump = goodDump(request);
		if (which === 'both' || which === request.which) change(dump, request);
		writeRaw(`${root}/dumps`, request.rid, dump);
	};

describe('the token lists', () => {
	it('are what their sums say, in any vocabulary above 30,000, and cut by a cap', () => {
		for (const which of ['short', 'long'] as const) {
			const ids = canaryIds(which);
			expect(idsHash(ids)).toBe(CANARY_SHA256[which]);
			expect(Math.min(...ids)).toBeGreaterThanOrEqual(1_000);
			expect(Math.max(...ids)).toBeLessThan(29_000);
			expect(canaryIds(which, 7)).toEqual(ids.slice(0, 7));
		}
		expect([8_192, 1_000, 128, 1].map(canaryTokens)).toEqual([
			{short: 200, long: 4_000},
			{short: 200, long: 1_000},
			{short: 32, long: 128},
			{short: 1, long: 1},
		]);
	});
});

describe.skipIf(!PYTHON)('the canary of a launch', () => {
	it('sends both lists, reads every row, and moves its own dumps aside, and nobody else’s', async () => {
		const {code, lines, root} = await fly((request, place) => {
			mkdirSync(`${place}/dumps/req_relight-5-ab`, {recursive: true});
			raw()(request, place);
		});
		const read = (tokens: number) =>
			`canary of ${tokens} tokens: ${tokens} of ${tokens} rows of 5 states read; finite, all different; ${NORMS}`;
		expect(lines).toEqual([
			expect.stringMatching(read(10)),
			expect.stringMatching(read(40)),
			`canary: both dumps are complete and right, and moved to ${root}/dumps/.quarantine/canary-l1`,
		]);
		expect(code).toBe(0);
		expect(served?.requests.map(({ids}) => ids)).toEqual([canaryIds('short', 10), canaryIds('long', 40)]);
		expect(readdirSync(`${root}/dumps`)).toEqual(['.quarantine', 'req_relight-5-ab']);
		expect(readdirSync(`${root}/dumps/.quarantine/canary-l1`)).toEqual([
			'req_relight-canary-l1-long',
			'req_relight-canary-l1-short',
		]);
	});

	/** The first rows, and the chunks behind them if they are there. */
	const cutAt =
		(...ends: number[]) =>
		(dump: RawDump, request: Request) => {
			const [first, ...others] = ends.map((end, at) => goodDump(request, ends[at - 1] ?? 0, end));
			Object.assign(dump, first, {parts: others});
		};
	const same = (dump: RawDump) => {
		dump.states.aux_1 = dump.states.aux_0;
	};
	const refusal = (reason: string) => (dump: RawDump) => {
		dump.error = {reason, detail: {stashed: ['final']}};
	};
	const value = (bits: number) => (dump: RawDump) => dump.states.aux_2.writeUInt16LE(bits, (3 * WIDTH + 5) * 2);
	it.each<[string, (dump: RawDump, request: Request) => void, 'short' | 'long' | 'both', string]>([
		[
			'rows missing in the long one',
			cutAt(16),
			'long',
			'canary of 40 tokens (the other one is right): 16 of 40 rows in 1 piece(s); likely chunked prefill: --chunked-prefill-size -1, and',
		],
		[
			'rows missing in both',
			cutAt(4),
			'both',
			'canary of 10, 40 tokens (both): 4 of 10 rows in 1 piece(s); likely chunked prefill',
		],
		['a chunk missing', cutAt(16, 32), 'long', '32 of 40 rows in 2 piece(s); likely chunked prefill'],
		['all chunks there', cutAt(16, 32, 40), 'long', 'both dumps are complete and right'],
		[
			'two layers alike in the short one',
			same,
			'short',
			'aux_0 and aux_1 have the same rows; likely all-reduce fusion, which works on short',
		],
		[
			'two layers alike in both',
			same,
			'both',
			'(both): aux_0 and aux_1 have the same rows; likely a fused all-reduce that goes past',
		],
		['a NaN', value(0x7fc1), 'long', 'aux_2 has a NaN or an infinity in row 3; likely broken kernels'],
		['an infinity', value(0xff80), 'long', 'aux_2 has a NaN or an infinity in row 3'],
		['the largest finite value', value(0xff7f), 'long', 'both dumps are complete and right'],
		[
			'another sum',
			dump => {
				dump.summed = statesOf([1, ...canaryIds('long', 39)]);
			},
			'long',
			'the checksum of aux_0 is wrong; likely memory',
		],
		[
			'too few bytes',
			dump => {
				dump.states.final_pre = dump.states.final_pre.subarray(2);
			},
			'long',
			'final_pre.bin has 1278 bytes where 1280 belong',
		],
		[
			'other ids',
			dump => {
				dump.meta.ids_sha256 = 'f'.repeat(64);
			},
			'short',
			'the hash of the token ids is not that of the ids sent',
		],
		[
			'other layers',
			dump => {
				dump.meta.layers = [1, 29, 57];
			},
			'both',
			'layers [1, 29, 57] where [2, 30, 58] are asked for',
		],
		[
			'another width',
			dump => {
				dump.meta.H = 8;
			},
			'both',
			'rows have 8 values where 16 belong',
		],
		[
			'another request',
			dump => {
				dump.meta.rid = 'relight-9';
			},
			'both',
			'the dump is of request relight-9',
		],
		[
			'a final that was not normed',
			dump => {
				dump.states.final_post = statesOf(canaryIds('long', 40).reverse()).final_pre;
			},
			'long',
			'final_post has mean((h/w)^2)',
		],
		[
			'a size that meta.json does not say',
			dump => void Object.assign(dump.meta, {files: {'aux_0.bin': {}}}),
			'both',
			'meta.json says None bytes of aux_0.bin, which has 320',
		],
		[
			'a sum that meta.json does not say',
			dump => void Object.assign(dump.meta, {files: {'aux_0.bin': {bytes: dump.states.aux_0.length}}}),
			'both',
			"the dump cannot be read: KeyError('crc32')",
		],
		[
			'a refusal in the short one',
			refusal('stash_count'),
			'short',
			'the hook refused: stash_count {"stashed": ["final"]}; likely all-reduce fusion',
		],
		[
			'a refusal in both',
			refusal('stash_count'),
			'both',
			'stash_count {"stashed": ["final"]}; likely a fused all-reduce',
		],
		['no room', refusal('no_space'), 'long', 'likely too little room: the hook wants twice what it writes'],
	])('%s', async (_name, change, which, words) => {
		const {code, lines, root} = await fly(raw(change, which));
		expect(lines.at(-1)).toContain(words);
		expect(code).toBe(words.includes('complete and right') ? 0 : 1);
		// Wrong dumps are evidence: they are kept as well.
		expect(readdirSync(`${root}/dumps/.quarantine/canary-l1`)).toHaveLength(2);
	});

	it.each<[string, Record<string, unknown> | number, string]>([
		['cached tokens', {cached_tokens: 6}, '6 tokens came from a cache; likely a prefix cache: --disable-radix-cache'],
		['another id', {id: 'other'}, 'the answer is for request other'],
		['another prompt', {prompt_tokens: 3}, '3 prompt tokens'],
		['HTTP 400', 400, 'refused with HTTP 400 {"error":"is longer than"}'],
	])('%s in the answer', async (_name, change, words) => {
		const {code, lines} = await fly(raw(), {
			answer: answered => {
				if (typeof change === 'number') answered.status = change;
				else Object.assign(answered.meta, change);
			},
		});
		expect(lines.at(-1)).toContain(words);
		expect(code).toBe(1);
	});

	it('nothing that dumps: said with where to look', async () => {
		const named = await fly(() => {});
		expect(named.lines.at(-1)).toContain(
			'meta.json appeared; likely nothing dumps in this server: are there five lines "Registered forward hook" in its log?',
		);
		await served?.close();
		const counted = await fly(() => {}, {dumps: COUNTED});
		expect(counted.lines.at(-1)).toContain('is the patch active in the package that was imported?');
	});

	it('a checkpoint without a readable norm: the spread alone, and said so', async () => {
		const {code, lines} = await fly(raw(), {weights: false});
		expect(code).toBe(0);
		expect(lines[0]).toContain('no readable model.norm.weight, so RMS alone: mean square of final_post ');
	});

	it('a server that cuts the connection', async () => {
		const {code, lines} = await fly(raw(), {
			answer: answered => {
				answered.status = 0;
			},
		});
		expect(code).toBe(1);
		expect(lines.at(-1)).toContain('no usable answer: ');
	});

	describe('of the source patch', () => {
		const counted = (rows: (tokens: number) => number) => {
			let counter = 0;
			return ({ids}: Request, root: string) => {
				const folder = `${root}/dumps/req_${++counter}`;
				mkdirSync(folder, {recursive: true});
				const states = statesOf(ids);
				for (const [name, from] of [
					...STATES.slice(0, 3).map(each => [each, each]),
					['final', 'final_post'],
				] as const) {
					const count = rows(ids.length);
					const plan = planTorchFile(name ?? '', tensor('BF16', [count, WIDTH]));
					const data = states[from as (typeof STATES)[number]].subarray(0, count * WIDTH * 2);
					writeFileSync(`${folder}/${name}.pt`, Buffer.concat(torchFile(plan, [data])));
				}
				writeFileSync(`${folder}/done`, '');
			};
		};

		it('is found among counted dumps, and which side of the norm its final lies on is told', async () => {
			const {code, lines, root} = await fly(
				counted(tokens => tokens),
				{dumps: COUNTED},
			);
			expect(lines[1]).toContain('40 of 40 rows of 4 states read; finite, all different; norm: final is post-norm (');
			expect(code).toBe(0);
			expect(existsSync(`${root}/dumps/.quarantine/canary-l1/req_2/done`)).toBe(true);
		});

		it('with rows missing in the long one alone', async () => {
			const {lines} = await fly(
				counted(tokens => Math.min(tokens, 16)),
				{dumps: COUNTED},
			);
			expect(lines.at(-1)).toContain(
				'canary of 40 tokens (the other one is right): 16 of 40 rows; likely chunked prefill',
			);
		});

		it('stale dumps with the same numbers go aside before and after', async () => {
			const make = counted(tokens => tokens);
			const {code, root} = await fly(
				(request, place) => {
					if (request.which === 'long') mkdirSync(`${place}/dumps/req_1`, {recursive: true});
					make(request, place);
				},
				{dumps: COUNTED},
			);
			expect(code).toBe(0);
			expect(readdirSync(`${root}/dumps/.quarantine/canary-l1`)).toEqual(['req_1', 'req_1-1', 'req_2']);
		});
	});

	describe('of staged containers', () => {
		const stage =
			(change: (sidecar: Record<string, unknown>, states: ReturnType<typeof statesOf>) => void = () => {}) =>
			({rid, ids}: Request, root: string) => {
				const states = statesOf(ids);
				const sidecar: Record<string, unknown> = {
					...goodDump({rid, ids}).meta,
					norm: {hidden_state: 'post', hidden_states: 'pre'},
				};
				change(sidecar, states);
				// One storage [T, 5, H] with views, behind 64 bytes of something else.
				const rows = ids.flatMap((_, row) =>
					STATES.map(name => states[name].subarray(row * WIDTH * 2, (row + 1) * WIDTH * 2)),
				);
				const file = Buffer.concat([Buffer.alloc(64), ...rows, Buffer.alloc(32)]);
				const [T, step] = [ids.length, 5 * WIDTH];
				const view = (key: string, at: number, shape: number[], stride: number[]) => ({
					key,
					dtype: 'bfloat16',
					shape,
					stride,
					offset: 64 + at * WIDTH * 2,
					nbytes: shape.reduce((product, each) => product * each, 2),
				});
				const tensors = [
					{key: 'input_ids', dtype: 'int64', shape: [T], stride: [1], offset: 0, nbytes: 8 * T},
					view('aux_hidden_state', 0, [1, T, 3 * WIDTH], [T * step, step, 1]),
					view('hidden_state', 4, [1, T, WIDTH], [T * step, step, 1]),
					...[0, 1, 2, 3].map(at => view(`hidden_states.${at}`, at, [T, WIDTH], [step, 1])),
				];
				mkdirSync(`${root}/staging`, {recursive: true});
				writeFileSync(`${root}/staging/${rid}.json`, JSON.stringify({bytes: file.length, tensors, ...sidecar}));
				writeFileSync(`${root}/staging/${rid}.ready`, file);
			};
		const STAGED: ServerDumps = {kind: 'staged', staging: '-', layers: [2, 30, 58]};

		it('are read through their sidecar, whatever their strides, and go aside beside their place', async () => {
			const {code, lines, root} = await fly(stage(), {dumps: STAGED});
			expect(lines[1]).toMatch(new RegExp(`40 of 40 rows of 8 states read; finite, all different; ${NORMS}`));
			expect(code).toBe(0);
			expect(readdirSync(`${root}/.canary/l1`).sort()).toEqual(
				['long', 'short'].flatMap(each => [`relight-canary-l1-${each}.json`, `relight-canary-l1-${each}.ready`]),
			);
		});

		it.each<[string, Parameters<typeof stage>[0], string]>([
			[
				'a NaN between the views',
				(_, states) => states.final_pre.writeUInt16LE(0x7f81, 3 * WIDTH * 2),
				'final_pre has a NaN or an infinity in row 3',
			],
			[
				'another size',
				sidecar => {
					sidecar.bytes = 7;
				},
				'bytes where its sidecar says 7',
			],
			[
				'a final under the wrong name',
				sidecar => {
					sidecar.norm = {hidden_state: 'pre', hidden_states: 'post'};
				},
				'final_post has mean((h/w)^2)',
			],
			[
				'rows missing',
				sidecar => {
					sidecar.T = 3;
				},
				'3 of 10 rows',
			],
		])('%s', async (_name, change, words) => {
			const {code, lines} = await fly(stage(change), {dumps: STAGED});
			expect(lines.at(-1)).toContain(words);
			expect(code).toBe(1);
		});
	});

	it('a dump that is named by the hash of its ids', async () => {
		const {code} = await fly(
			(request, root) => {
				const dump = goodDump(request);
				dump.meta.rid = null;
				writeRaw(`${root}/dumps`, `ids-${idsHash(request.ids)}`, dump);
			},
			{dumps: {...NAMED, kind: 'nameless'}},
		);
		expect(code).toBe(0);
	});

	it('names its program by its sum', () => {
		const {script, program} = canary({
			server: {python: "/opt/it's/python3", port: 1, model: '/m'},
			dumps: NAMED,
			dumpDir: '/d',
			hiddenSize: 1,
			maxTokens: 8_192,
			id: 'x',
		});
		expect(script.split('\n')[0]).toContain(createHash('sha256').update(program).digest('hex'));
		expect(script.length).toBeLessThan(1_024);
		expect(packed([1]).length).toBe(2);
	});
});
