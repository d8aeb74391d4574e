import {spawn, spawnSync} from 'node:child_process';
import {
	chmodSync,
	cpSync,
	existsSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	truncateSync,
	writeFileSync,
} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {build} from 'esbuild';
import {afterAll, afterEach, beforeAll, beforeEach, expect, test} from 'vitest';
import {inkOutput} from '../../../bin/ink-output.js';
import {thisWriter} from '../../../src/ops/extract/lock.ts';
import {progressWords} from '../../../src/ops/verify/report.ts';
import {dataset, legacySample, put, safetensorsSample} from './support/samples.ts';

/** The bundle as it is shipped, in a place of its own: threads run from its chunks. */
const DIST = join('node_modules', `.verify-command-${process.pid}`);

beforeAll(() =>
	build({
		plugins: [inkOutput],
		entryPoints: {relight: 'bin/relight.ts'},
		outdir: DIST,
		bundle: true,
		splitting: true,
		format: 'esm',
		platform: 'node',
		external: ['ssh2', '@lydell/node-pty', '@xterm/headless'],
		define: {'process.env["DEV"]': '"false"'},
		alias: {'react-devtools-core': './bin/no-devtools.js'},
		loader: {'.py': 'text', '.sh': 'text'},
		banner: {js: "import {createRequire as __r} from 'node:module'; const require = __r(import.meta.url);"},
		logLevel: 'error',
	}),
);
afterAll(() => rmSync(DIST, {recursive: true, force: true}));

let root = '';
beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), 'relight-command-'));
});
afterEach(() => rmSync(root, {recursive: true, force: true}));

function relight(...argv: readonly string[]) {
	const {status, stdout, stderr} = spawnSync(process.execPath, [join(DIST, 'relight.js'), 'verify', ...argv], {
		encoding: 'utf8',
	});
	return {status, stdout, stderr};
}
const at = (name: string): string => join(root, name);
const sample = (index: number, tokens = 40): string =>
	put(at(`rows_0-2000/data_${index}.pt`), legacySample(index, tokens));

test('one JSON object with everything in it, and exit 2 for suspects', () => {
	const bytes = [0, 1, 4].map(index => legacySample(index, 40).length).reduce((sum, each) => sum + each, 0);
	for (const index of [0, 1, 4, 5]) sample(index);
	truncateSync(at('rows_0-2000/data_5.pt'), 5_000);
	put(at('rows_0-2000/.data_6.pt.77.tmp'), 'on its way');
	put(at('rows_0-2000/data_2.ckpt'), readFileSync('test/fixtures/pt/good-no-crc.ckpt'));
	put(at('rows_0-2000/data_7.ckpt.gz'), readFileSync('test/fixtures/pt/good-specforge-bf16.ckpt.gz'));
	const {status, stdout, stderr} = relight(root, '--level', 'crc', '--json');
	expect([status, stderr]).toEqual([2, '']);
	const report = JSON.parse(stdout);
	expect(stdout.trimEnd().split('\n')).toHaveLength(1);
	expect(report).toEqual({
		schema: 'relight.verify/1',
		level: 'crc',
		files: 6,
		done: 3,
		bytes: bytes + 5_000 + 26_983 + 20_556,
		seconds: expect.any(Number),
		suspects: [
			{
				path: at('rows_0-2000/data_5.pt'),
				index: 5,
				layer: null,
				reason: 'cut off: no end record: the file is cut off',
			},
		],
		unverifiable: [
			{
				path: at('rows_0-2000/data_2.ckpt'),
				index: 2,
				reason: 'no checksums: all checksums are 0: none were written',
			},
		],
		unsupported: [{path: at('rows_0-2000/data_7.ckpt.gz'), index: 7, reason: 'gzip'}],
		holes: [
			[3, 3],
			[6, 6],
		],
	});
});

test('exit 0 when all is done, 1 for holes alone, also for a dataset that goes on', () => {
	for (const index of [0, 1]) sample(index);
	expect(relight(root).status).toBe(0);
	expect(relight(at('rows_0-2000/data_1.pt'), '--level', 'values').status).toBe(0);
	put(at('data.jsonl'), dataset([40, 40, 40, 40]));
	const short = relight(root, '--dataset', at('data.jsonl'));
	expect([short.status, short.stdout]).toEqual([1, expect.stringContaining('holes: 2 missing: 2-3')]);
	sample(3);
	expect(relight(root)).toMatchObject({status: 1, stdout: expect.stringContaining('holes: 1 missing: 2\n')});
	expect(relight(put(at('empty/notes.txt'), 'x').replace('/notes.txt', ''))).toMatchObject({
		status: 1,
		stdout: 'no tensor files here\n',
	});
});

test('what was not looked at is said', () => {
	put(at('hs_0.safetensors'), safetensorsSample(0, 30));
	const {stdout} = relight(root, '--level', 'values');
	expect(stdout).toContain('not checked: changed bits in safetensors files');
	expect(stdout).toContain('not checked: side of the norm (--norm FILE)');
	expect(relight(root).stdout).toContain('not checked: tensor data');
});

test('wrong use is one sentence and exit 64', () => {
	const sentence = /^relight verify: [^\n]*\n$/;
	for (const argv of [
		[],
		[at('none')],
		[root, '--level', 'deep'],
		[root, '--hidden', 'x'],
		[root, '--norm', at('none')],
	]) {
		expect(relight(...argv)).toEqual({status: 64, stdout: '', stderr: expect.stringMatching(sentence)});
	}
	expect(relight(root, '--dataset', put(at('data.jsonl'), 'not json'))).toMatchObject({status: 64, stdout: ''});
});

test('a directory that cannot be read is one sentence and exit 3', () => {
	sample(0);
	chmodSync(root, 0o755);
	chmodSync(at('rows_0-2000'), 0);
	// Root may read everything: as nobody, then.
	const uid = process.getuid?.() === 0 ? 65_534 : undefined;
	const program = mkdtempSync(join(tmpdir(), 'relight-readable-'));
	cpSync(DIST, program, {recursive: true});
	chmodSync(program, 0o755);
	const found = spawnSync(process.execPath, [join(program, 'relight.js'), 'verify', root], {
		cwd: '/',
		encoding: 'utf8',
		...(uid && {uid}),
	});
	rmSync(program, {recursive: true});
	expect([found.status, found.stdout, found.stderr]).toEqual([
		3,
		'',
		`relight verify: ${at('rows_0-2000')}: cannot be read (EACCES)\n`,
	]);
});

test('suspects are moved into quarantine with a note, and nothing else is', () => {
	for (const index of [0, 1, 2]) sample(index);
	const whole = readFileSync(at('rows_0-2000/data_1.pt'));
	writeFileSync(at('rows_0-2000/data_1.pt'), whole.subarray(0, 5_000));
	expect(relight(root, '--quarantine').status).toBe(2);
	expect(readdirSync(at('rows_0-2000'))).toEqual(['data_0.pt', 'data_2.pt']);
	const [bad = '', note = ''] = readdirSync(at('quarantine')).sort();
	expect(readFileSync(at(`quarantine/${bad}`)).equals(whole.subarray(0, 5_000))).toBe(true);
	expect(JSON.parse(readFileSync(at(`quarantine/${note}`), 'utf8'))).toMatchObject({
		from: at('rows_0-2000/data_1.pt'),
		reason: 'cut off: no end record: the file is cut off',
	});
	expect(relight(root)).toMatchObject({status: 1, stdout: expect.stringContaining('holes: 1 missing: 1')});
	expect(existsSync(at('.relight-writer'))).toBe(false);
});

test('a tree that another writer holds is looked at and left as it is', () => {
	put(at('rows_0-2000/data_0.pt'), 'cut');
	writeFileSync(at('.relight-writer'), JSON.stringify(thisWriter('/proc')));
	const {status, stderr} = relight(root, '--quarantine');
	expect([status, stderr]).toEqual([4, expect.stringContaining('another writer holds')]);
	expect(readdirSync(at('rows_0-2000'))).toEqual(['data_0.pt']);
});

test('threads of the bundle say what one thread says; a killed run goes on where it was', async () => {
	const big = legacySample(0, 200, 7_168);
	for (let index = 0; index < 12; index++) put(at(`data_${index}.pt`), big);
	const broken = Buffer.from(big);
	broken.writeUInt16LE(0x7fc0, 6_000_000);
	put(at('data_3.pt'), broken);
	const journal = at('.relight/verified.ndjson');
	const child = spawn(process.execPath, [join(DIST, 'relight.js'), 'verify', root, '--level', 'crc'], {
		stdio: 'ignore',
	});
	const ended = new Promise(resolve => child.once('exit', resolve));
	const written = (): boolean => existsSync(journal) && statSync(journal).size > 0;
	while (child.exitCode === null && !written()) await new Promise(resolve => setTimeout(resolve, 1));
	child.kill('SIGKILL');
	await ended;
	const known = readFileSync(journal, 'utf8').split('\n').length - 1;
	expect(known).toBeGreaterThan(0);
	const {status, stdout} = relight(root, '--level', 'crc');
	expect([status, stdout]).toEqual([2, expect.stringContaining(`${known} of them known from an earlier run`)]);
	expect(stdout).toContain('crc: 11 of 12 files done');
	expect(stdout).toContain('data_3.pt  checksum of data/3 is wrong');
});

test('the line of progress', () => {
	const progress = {files: 40, doneFiles: 10, bytes: 4e9, doneBytes: 1e9, suspects: 1};
	expect(progressWords(progress, 0.5)).toBe('10 of 40 files, 20 files/s, 2.00 GB/s, 2 s left, 1 suspect');
	expect(progressWords({files: 0, doneFiles: 0, bytes: 0, doneBytes: 0, suspects: 0}, 1)).toBe(
		'0 of 0 files, 0 files/s, 0.00 GB/s, 0 s left',
	);
});
