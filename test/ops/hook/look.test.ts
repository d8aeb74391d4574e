import {execFileSync, spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {afterEach, describe, expect, it} from 'vitest';
import {type HookFacts, lookScript, parseLook} from '../../../src/ops/hook/look.ts';
import {ParseError} from '../../../src/ops/outcome.ts';
import {BARE, targetWith} from './sample-target.ts';

const HOOK = join(import.meta.dirname, '../../../src/ops/hook');
const LOOK = readFileSync(join(HOOK, 'look.py'));
const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');
const python = spawnSync('sh', ['-c', 'command -v python3'], {encoding: 'utf8'}).stdout.trim();
const without = python ? '' : ' (skipped: there is no python3 here)';

describe('the answer of the look', () => {
	it('becomes facts, whatever else that Python printed', () => {
		const answer = {...BARE, status: null};
		expect(parseLook(`site: hello\nrelight-hook-look ${JSON.stringify(answer)}\n`)).toEqual(BARE);
	});

	it('reads the status that the hook left, and takes no other file for it', () => {
		const status = {
			schema: 'relight.hook-status/1',
			server: {pid: 41},
			module_sha256: 'c0de',
			slots: ['aux_0', 'write'],
			written: {requests: 3, parts: 2},
			refused: {not_finite: 1},
			exceptions: 1,
			last_error: {where: 'write', error: 'OSError(28)', at: 5},
			saved_at: 1_790_000_000_000,
		};
		const read = (value: object) => parseLook(`relight-hook-look ${JSON.stringify({...BARE, status: value})}`).status;
		expect(read(status)).toEqual({
			pid: 41,
			moduleSha256: 'c0de',
			slots: ['aux_0', 'write'],
			written: 5,
			refused: 1,
			exceptions: 1,
			lastError: 'OSError(28)',
			savedAt: 1_790_000_000_000,
		});
		expect(read({...status, schema: 'other'})).toBeNull();
		expect(read({schema: 'relight.hook-status/1', written: 'many', slots: 3})).toMatchObject({written: 0, slots: []});
	});

	it.each([
		'',
		'Traceback\nKeyError: 1',
		'relight-hook-look {',
		'relight-hook-look []',
		'relight-hook-look {"python":3}',
	])('%j does not fit', text => expect(() => parseLook(text)).toThrow(ParseError));
});

it('nothing is asked without a server', () => {
	expect(lookScript(targetWith({}, {server: null}), '/x')).toBeNull();
	expect(lookScript(targetWith({env: {A: 'b c'}}), "/it's")).toBe(
		"cd / && exec env 'A=b c' timeout -k 1 12 /root/ml-env/bin/python3 - /dev/shm/sglang_hs /root/sglang /shared/kimi-k2.5-int4 '/it'\\''s'",
	);
});

describe.skipIf(!python)(`the look in a real Python${without}`, () => {
	let root = '';
	afterEach(() => rmSync(root, {recursive: true, force: true}));

	function host(files: Record<string, string>): string {
		root = mkdtempSync(join(tmpdir(), 'relight-hook-'));
		for (const [path, text] of Object.entries(files)) {
			mkdirSync(dirname(join(root, path)), {recursive: true});
			writeFileSync(join(root, path), text);
		}
		return root;
	}

	function look(env: Record<string, string> = {}): HookFacts {
		const target = targetWith(
			{python, tree: `${root}/tree`, model: `${root}/model`, env: {PYTHONPATH: `${root}/site`, ...env}},
			{dump: {dir: `${root}/dumps`, limitBytes: null}},
		);
		const script = lookScript(target, `${root}/dumps`);
		return parseLook(execFileSync('sh', ['-c', script ?? ''], {input: LOOK, encoding: 'utf8'}));
	}

	const MODULE = 'sglang/srt/models/deepseek_v2.py';
	const PLAIN = 'A = 1\nB = 22222222\n';
	const PATCHED = '_hs_dump_dir = 1\n#\n';
	const SITE = {
		'site/sglang/__init__.py': 'raise SystemExit("imported!")\n',
		[`site/${MODULE}`]: PLAIN,
		'site/sglang-0.5.12.dist-info/METADATA': 'Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.12\n',
	};
	const compile = (path: string, mode = 'TIMESTAMP') =>
		execFileSync(python, [
			'-c',
			'import py_compile,sys; py_compile.compile(sys.argv[1], invalidation_mode=getattr(py_compile.PycInvalidationMode, sys.argv[2]))',
			path,
			mode,
		]);

	it('finds the package that would be imported, and does not import it', () => {
		host({
			...SITE,
			'tree/python/sglang/srt/models/deepseek_v2.py': PATCHED,
			'model/config.json':
				'{"architectures":["KimiK25ForConditionalGeneration"],"text_config":{"num_hidden_layers":61}}',
			'dumps/relight_hs.py': 'x = 1\n',
		});
		expect(look()).toEqual({
			python: expect.stringMatching(/^3\./),
			sglang: {
				directory: `${root}/site/sglang`,
				version: '0.5.12',
				source: {path: `${root}/site/${MODULE}`, sha256: sha256(PLAIN), marked: false},
				bytecode: null,
				flags: null,
				hooks: false,
			},
			tree: {path: `${root}/tree/python/${MODULE}`, sha256: sha256(PATCHED), marked: true},
			hook: {
				importable: null,
				placed: {path: `${root}/dumps/relight_hs.py`, sha256: sha256('x = 1\n'), marked: false},
			},
			model: {architecture: 'KimiK25ForConditionalGeneration', layers: 61, hiddenSize: null},
			status: null,
		});
	});

	it('reads the flags of a launch out of their source, and says nothing where it has few', () => {
		const told = 'parser.add_argument("--model-path", "--model")\nparser.add_argument(\'--tp-size\', type=int)\n';
		host({...SITE, 'site/sglang/srt/server_args.py': told});
		expect(look().sglang?.flags).toEqual(['--model', '--model-path', '--tp-size']);
		host({...SITE, 'site/sglang/srt/server_args.py': 'old = "--disable-cuda-graph"\n'});
		expect(look().sglang?.flags).toBeNull();
	});

	it('finds the hook where the environment of a launch leads', () => {
		host({...SITE, 'dumps/relight_hs.py': 'x = 1\n'});
		const facts = look({PYTHONPATH: `${root}/site:${root}/dumps`});
		expect(facts.hook.importable?.path).toBe(`${root}/dumps/relight_hs.py`);
	});

	it('tells bytecode that fits from bytecode that does not, by its header', () => {
		const path = join(host(SITE), 'site', MODULE);
		compile(path);
		expect(look().sglang?.bytecode).toMatchObject({state: 'fits', marked: false});
		// Edited in place with its size and time kept: the interpreter goes on with the old bytecode.
		const {mtime, size} = statSync(path);
		writeFileSync(path, PATCHED.padEnd(size - 1, '#').padEnd(size, '\n'));
		utimesSync(path, mtime, mtime);
		const kept = look().sglang;
		expect([kept?.source?.marked, kept?.bytecode?.state, kept?.bytecode?.marked]).toEqual([true, 'fits', false]);
		utimesSync(path, mtime, new Date(mtime.getTime() + 5_000));
		expect(look().sglang?.bytecode?.state).toBe('outdated');
		compile(path, 'UNCHECKED_HASH');
		expect(look().sglang?.bytecode).toMatchObject({state: 'never checked', marked: true});
		compile(path, 'CHECKED_HASH');
		expect(look().sglang?.bytecode?.state).toBe('checked by hash');
	});

	it('an environment without sglang is an answer too', () => {
		host({'site/readme': ''});
		const facts = look();
		expect([facts.sglang, facts.tree, facts.model]).toEqual([null, null, null]);
	});

	it.each(['relight_hs.py', 'look.py'])('%s compiles', file => {
		const out = join(host({}), 'out.pyc');
		const program = 'import py_compile,sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], doraise=True)';
		execFileSync(python, ['-c', program, join(HOOK, file), out]);
	});
});
