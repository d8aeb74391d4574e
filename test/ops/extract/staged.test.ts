import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {makeRecords} from '../../../src/ops/drill/records.ts';
import {type FilePort, systemFiles} from '../../../src/ops/extract/file-port.ts';
import type {LayoutName} from '../../../src/ops/extract/layouts.ts';
import {crc32} from '../../../src/ops/tensor/crc.ts';
import {until} from '../drill/support/shell.ts';
import {Bench} from './support/bench.ts';
import type {StagedOptions} from './support/hook-dumps.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

const LAYOUTS = ['universal', 'specforge', 'speculators', 'legacy'] as const;

/** The files that a run with raw dumps makes, which the other way has to make, too. */
async function fromRaw(layout: LayoutName): Promise<Buffer[]> {
	const other = new Bench();
	other.extraction = {...other.extraction, layout};
	await other.serveHook();
	expect(await other.run()).toBe(0);
	const files = other.records.map((_, index) => readFileSync(other.path(index)));
	await other.end();
	return files;
}

const staging = () => `${bench.extraction.output}/.staging`;
const stored = () => bench.records.map((_, index) => existsSync(bench.path(index)));
const use = (layout: LayoutName): void => {
	bench.extraction = {...bench.extraction, layout, concurrency: 3};
};

test.each(LAYOUTS)(
	'%s: a staged file becomes, byte for byte, what would have been written from raw states',
	async layout => {
		const right = await fromRaw(layout);
		use(layout);
		const inodes = new Map<number, number>();
		await bench.serveStaging(
			{layout, final: 'pre'},
			{
				served: rid => {
					const index = Number(/^relight-(\d+)-/.exec(rid)?.[1]);
					inodes.set(index, statSync(`${staging()}/${rid}.ready`).ino);
				},
			},
		);
		expect(await bench.run()).toBe(0);
		for (const [index, bytes] of right.entries()) {
			expect(readFileSync(bench.path(index)).equals(bytes), String(index)).toBe(true);
			expect(statSync(bench.path(index)).ino).toBe(inodes.get(index));
		}
		expect(readdirSync(staging())).toEqual([]);
		const lines = bench.ndjson('extraction-journal.ndjson').filter(entry => 'proof' in entry);
		expect(lines.map(({index}) => index).sort((a, b) => Number(a) - Number(b))).toEqual(
			bench.records.map((_, index) => index),
		);
		for (const {index, crc32: sum, bytes} of lines) {
			const file = readFileSync(bench.path(Number(index)));
			expect([Number.parseInt(String(sum), 16), bytes]).toEqual([crc32(file), file.length]);
		}
		expect(bench.manifest()).toMatchObject({layout, layers: '2 30 58'});
		bench.server.rids.length = 0;
		expect(await bench.run()).toBe(0);
		expect(bench.server.rids).toEqual([]);
	},
);

test('a tree from raw dumps is gone on with from staged files, after a comparison', async () => {
	use('universal');
	await bench.serveHook();
	await bench.run();
	const right = readFileSync(bench.path(6));
	await bench.server.close();
	for (const index of [6, 7]) rmSync(bench.path(index));
	await bench.serveStaging({layout: 'universal'});
	expect(await bench.run()).toBe(0);
	expect(bench.asked('relight-check').length).toBe(3);
	expect(bench.lines).toContainEqual(
		expect.stringContaining('ontinuity: 3 stored samples extracted again, worst cosine 1.00000'),
	);
	expect(readFileSync(bench.path(6)).equals(right)).toBe(true);
	expect(readdirSync(staging())).toEqual([]);
	rmSync(bench.path(7));
	await bench.server.close();
	await bench.serveStaging({layout: 'universal', shift: 1});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain('the server does not make the states that are stored');
});

type Damage = Omit<StagedOptions, 'layout'>;
const changed = (change: (file: Buffer) => unknown): Damage => ({
	file: file => {
		change(file);
		return file;
	},
});
const said = (facts: Record<string, unknown>): Damage => ({sidecar: sidecar => Object.assign(sidecar, facts)});
const tensor = (change: Record<string, unknown>): Damage => ({
	sidecar: sidecar => Object.assign((sidecar.tensors as Record<string, unknown>[])[2] ?? {}, change),
});
const T = makeRecords(1, 1)[0]?.input_ids.length ?? 0;
/** Of sample 0 in universal: where its states start. */
const rowBytes = 5 * HIDDEN_SIZE * 2;

test.each([
	['another schema', said({schema: 'relight.staged/2'}), 'its sidecar is relight.staged/2'],
	['another request', said({request: 'relight-9-x'}), 'its sidecar is of relight-9-x'],
	['other ids', said({ids_sha256: 'f00'}), 'it is of other token ids'],
	['wrong rows', said({T: 3}), 'it has 3 rows where'],
	['a row that is not the first', said({prefix_len: 64}), 'it starts at row 64'],
	['another size', said({bytes: 100}), 'its sidecar says 100 bytes where'],
	['no placeholder', said({placeholders: []}), 'its placeholders are , not loss_mask'],
	['other shapes', tensor({shape: [1, 2, 3]}), 'its sidecar says aux_hidden_state bfloat16 [1,2,3] by'],
	['other places', tensor({offset: 64}), 'bytes at 64 where aux_hidden_state bfloat16'],
	[
		'a missing tensor',
		{sidecar: sidecar => Object.assign(sidecar, {tensors: []})},
		'its sidecar names 0 tensors where 8 belong',
	],
	['a cut', {file: file => file.subarray(0, -1)}, 'bytes where'],
	['a changed pickle', changed(file => file.set([0], 70)), 'data.pkl is not as it is written'],
	['a changed header', changed(file => file.set([1], 10)), 'its header of data_0/data.pkl is not as it is written'],
	[
		'sums that are there already',
		changed(file => file.writeUInt32LE(7, file.readUInt32LE(file.length - 6) + 16)),
		'its directory is not as it is written',
	],
	[
		'a NaN',
		changed(file => {
			const end = file.indexOf('data_0/version', undefined, 'latin1') - 30 - 16;
			file.writeUInt16LE(0x7fc0, end - rowBytes + 4 * HIDDEN_SIZE * 2);
		}),
		'NaN or infinity in layer final post',
	],
	['a page of zeros', {file: file => file.fill(0, 8192, 12_288)}, 'hidden_state'],
] as readonly [string, Damage, string][])(
	'with %s a staged file is never adopted: the sample fails in words',
	async (_, damage, words) => {
		use('universal');
		await bench.serveStaging(rid => ({layout: 'universal', ...(/^relight-0-/.test(rid) && damage)}));
		expect(await bench.run()).toBe(1);
		expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toContain(words);
		expect(stored()).toEqual(bench.records.map((_, index) => index !== 0));
		expect(T).toBeGreaterThan(24);
	},
);

test('one layer under two names is found in staged files, too', async () => {
	use('specforge');
	const width = 3 * HIDDEN_SIZE * 2;
	const alike = (file: Buffer): Buffer => {
		const from = Math.ceil((file.indexOf('data_0/data/2', undefined, 'latin1') + 13) / 64) * 64;
		for (let row = from; row < from + T * width; row += width)
			file.copy(file, row + HIDDEN_SIZE * 2, row, row + HIDDEN_SIZE * 2);
		return file;
	};
	await bench.serveStaging(rid => ({layout: 'specforge', ...(/^relight-0-/.test(rid) && {file: alike})}));
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toContain('layers aux 0 and aux 1 are identical');
});

test('with the norm weight, finals the wrong way round are found in staged files, too', async () => {
	use('universal');
	bench.giveWeights();
	await bench.serveStaging(rid => ({layout: 'universal', swap: /^relight-0-/.test(rid)}));
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toContain(
		'the final state before the norm of the dump is the one behind the norm',
	);
});

test.each(['edit', 'patch', 'settle'] as const)(
	'EIO at %s of a staged file ends the run in words; nothing of it is counted, and the next run has it',
	async call => {
		use('universal');
		const right = await fromRaw('universal');
		await bench.serveStaging({layout: 'universal'});
		const broken = Object.assign(new Error('EIO: as arranged'), {code: 'EIO'});
		let times = 0;
		const files: FilePort = {
			...systemFiles,
			[call]: (...given: never[]) => {
				if (++times === 7) throw broken;
				return (systemFiles[call] as (...each: never[]) => unknown)(...given);
			},
		};
		expect(await bench.run({files})).toBe(2);
		expect(bench.lines.at(-1)).toBe('Failed: EIO: as arranged');
		expect(stored().filter(Boolean).length).toBeLessThan(12);
		expect(await bench.run()).toBe(0);
		expect(
			bench.records.map((_, index) => readFileSync(bench.path(index)).equals(right[index] ?? Buffer.alloc(0))),
		).toEqual(bench.records.map(() => true));
	},
);

test('what the hook refuses is told, and nothing is staged', async () => {
	use('universal');
	bench.extraction = {...bench.extraction, concurrency: 1};
	await bench.serveStaging({layout: 'universal'});
	bench.server.faults.push('refused by the hook', 'refused by the hook', 'refused by the hook');
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => / failed: /.test(line))).toContain(
		'the hook refused: not_finite {"state":"aux_0","row":2}',
	);
});

test.each([
	[
		'another layout',
		'specforge',
		{layout: 'universal'},
		'the hook stages files of layout universal, the tree is one of specforge',
	],
	[
		'a legacy tree of the other side',
		'legacy',
		{layout: 'legacy', final: 'post'},
		'layout legacy: it stores final pre, and the dumps of this server hold',
	],
] as const)('%s is refused before a file is adopted', async (_, layout, options, words) => {
	use(layout);
	await bench.serveHook();
	await bench.run();
	await bench.server.close();
	rmSync(bench.path(3));
	bench.extraction = {...bench.extraction, continuity: 0};
	await bench.serveStaging(options);
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain(`Refused: ${words}`);
	expect(stored().filter(Boolean).length).toBe(11);
});

test('what lies in the staging directory when a run begins is set aside, not adopted and not deleted', async () => {
	use('universal');
	await bench.serveStaging({layout: 'universal'});
	mkdirSync(staging(), {recursive: true});
	for (const name of ['relight-3-abc.ready', 'relight-3-abc.json', 'relight-4-d.tmp'])
		writeFileSync(`${staging()}/${name}`, name);
	expect(await bench.run()).toBe(0);
	const aside = readdirSync(`${bench.extraction.output}/quarantine`).filter(name => name.endsWith('.bad'));
	expect(aside.map(name => name.replace(/\.\d+\.bad$/, '')).sort()).toEqual([
		'relight-3-abc.json',
		'relight-3-abc.ready',
		'relight-4-d.tmp',
	]);
	expect(readdirSync(staging())).toEqual([]);
});

test('bytes in the staging directory count against the limit of dumps', async () => {
	use('universal');
	bench.dumpLimitBytes = 200_000;
	let served = 0;
	await bench.serveStaging(
		{layout: 'universal'},
		{served: () => served++ === 0 && writeFileSync(`${staging()}/somebody-else.ready`, Buffer.alloc(199_000))},
	);
	const running = bench.run();
	await until(
		() => bench.lines,
		lines =>
			lines.some(line => /^Waiting for room: 0\.\d MB lie in .*\.staging of at most 0\.2 MB$/.test(line)) ||
			lines.some(line => line.startsWith('Done')),
	);
	expect(bench.lines.some(line => line.startsWith('Done'))).toBe(false);
	rmSync(`${staging()}/somebody-else.ready`);
	expect(await running).toBe(0);
});

test('sums and mask are on the disk before the file has its name, and that before the journal says so', async () => {
	use('universal');
	const calls: string[] = [];
	const heard = (name: keyof FilePort) => ({
		[name]: (...given: never[]) => {
			calls.push(`${name} ${typeof given[0] === 'string' ? String(given[0]).replace(/.*\//, '') : ''}`.trim());
			return (systemFiles[name] as (...each: never[]) => unknown)(...given);
		},
	});
	const names = ['edit', 'patch', 'settle', 'rename', 'settleDirectory'] as const;
	const files = Object.assign({}, systemFiles, ...names.map(heard)) as FilePort;
	bench.extraction = {...bench.extraction, concurrency: 1};
	bench.stop.abort();
	await bench.serveStaging({layout: 'universal'}, {served: () => stop.abort()});
	const stop = new AbortController();
	expect(await bench.run({files, stop: stop.signal})).toBe(0);
	const from = calls.findIndex(call => call.startsWith('edit'));
	const [edit = '', ...rest] = calls.slice(from);
	const patches = rest.findIndex(call => call !== 'patch');
	expect(edit).toMatch(/^edit relight-0-[0-9a-f]{12}\.ready$/);
	expect(patches).toBeGreaterThan(3);
	expect(rest.slice(patches)).toEqual(['settle', edit.replace('edit', 'rename'), 'settleDirectory rows_0-5', 'settle']);
});

const other = mkdtempSync(join(tmpdir(), 'relight-mount-'));
const mounted =
	process.getuid?.() === 0 &&
	spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'relight-test', other], {stdio: 'ignore'}).status === 0;
if (mounted) execFileSync('umount', ['-l', other]);
rmSync(other, {recursive: true});

test.skipIf(!mounted)('a staging directory on another file system is refused in words', async () => {
	use('universal');
	mkdirSync(staging(), {recursive: true});
	execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'relight-test', staging()]);
	try {
		await bench.serveStaging({layout: 'universal'});
		expect(await bench.run()).toBe(4);
		expect(bench.lines.at(-1)).toMatch(
			/^Refused: .*\.staging lies on another file system than .*out: staged files cannot be renamed into place; launch the server with raw dumps$/,
		);
		expect(bench.server.rids).toEqual([]);
	} finally {
		execFileSync('umount', ['-l', staging()]);
	}
});
