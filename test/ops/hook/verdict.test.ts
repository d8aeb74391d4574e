import {describe, expect, it} from 'vitest';
import type {HookFacts} from '../../../src/ops/hook/look.ts';
import {judgeHook} from '../../../src/ops/hook/verdict.ts';
import type {ServerConfig} from '../../../src/ops/target.ts';
import {BARE, DUMPS, OTHER, OWN, targetWith, withPackage} from './sample-target.ts';

const SOURCE = {path: '/site/sglang/srt/models/deepseek_v2.py', sha256: OTHER, marked: true};
const CACHE = '/site/sglang/srt/models/__pycache__/deepseek_v2.cpython-312.pyc';
const PATCH_ON = {env: {SGLANG_HS_DUMP_DIR: DUMPS}};
const HOOK_ON = {args: ['--forward-hooks', '[{"hook_factory":"relight_hs:hook"}]'], env: {RELIGHT_HS_DUMP_DIR: DUMPS}};
const INSTALLED = {importable: {path: '/root/relight/relight_hs.py', sha256: OWN, marked: false}, placed: null};

function judge(facts: HookFacts, server: Partial<ServerConfig> = {}) {
	const {way, findings} = judgeHook(targetWith(server), facts, OWN);
	return {way, bad: findings.filter(each => each.level !== 'ok').map(each => `${each.level}: ${each.words}`)};
}

describe('the source patch', () => {
	it('is active in the package that is imported, with its variable set', () => {
		const facts = withPackage({source: SOURCE, bytecode: {path: CACHE, state: 'fits', marked: true}});
		expect(judge(facts, PATCH_ON).way).toBe('source patch');
		expect(judge(facts).way).toBe('none');
		expect(judge(facts).bad.join()).toContain('server.env has no SGLANG_HS_DUMP_DIR');
	});

	it('does nothing in a tree that is not the one imported', () => {
		const tree = {...SOURCE, path: '/root/sglang/python/sglang/srt/models/deepseek_v2.py', sha256: OWN};
		const {way, bad} = judge({...BARE, tree}, PATCH_ON);
		expect(way).toBe('none');
		expect(bad.join()).toContain(
			`critical: ${tree.path} is not the copy that is imported: the patch there does nothing`,
		);
	});

	it('counts in the tree when that is the copy imported, as in an editable install', () => {
		const facts = {...withPackage({source: SOURCE, bytecode: null}), tree: SOURCE};
		const {way, bad} = judge(facts, PATCH_ON);
		expect(way).toBe('source patch');
		expect(bad.filter(each => each.includes('not the copy'))).toEqual([]);
	});

	it.each([
		['fits', false, 'none', 'lacks the patch: remove it'],
		['never checked', false, 'none', 'lacks the patch: remove it'],
		['outdated', false, 'source patch', null],
		['other interpreter', false, 'source patch', null],
		['checked by hash', false, 'source patch', null],
		['never checked', true, 'source patch', 'edits have no effect'],
	] as const)('bytecode that %s, patched: %s → %s', (state, marked, way, words) => {
		const seen = judge(withPackage({source: SOURCE, bytecode: {path: CACHE, state, marked}}), PATCH_ON);
		expect(seen.way).toBe(way);
		expect(seen.bad.some(each => each.includes('bytecode'))).toBe(words !== null);
		if (words) expect(seen.bad.join()).toContain(words);
	});
});

describe('the hook', () => {
	it('is active when the launch asks for it, SGLang can, and the module is found', () => {
		expect(judge({...BARE, hook: INSTALLED}, HOOK_ON)).toEqual({way: 'forward hook', bad: []});
	});

	it('is not when the module is there and PYTHONPATH does not lead to it', () => {
		const placed = {path: `${DUMPS}/relight_hs.py`, sha256: OWN, marked: false};
		const {way, bad} = judge({...BARE, hook: {importable: null, placed}}, HOOK_ON);
		expect(way).toBe('none');
		expect(bad[0]).toBe(`critical: ${placed.path} is there, but PYTHONPATH of server.env does not lead to it`);
	});

	it.each([
		[
			{...withPackage({version: '0.5.5'}), hook: INSTALLED},
			HOOK_ON,
			'none',
			'critical: this sglang has no --forward-hooks',
		],
		[{...BARE, hook: INSTALLED}, {...HOOK_ON, env: {}}, 'forward hook', `critical: RELIGHT_HS_DUMP_DIR is not set`],
		[{...BARE, hook: INSTALLED}, {}, 'none', 'warning: server.args has no --forward-hooks'],
		[BARE, HOOK_ON, 'none', 'critical: relight_hs.py is not installed'],
		[
			{...BARE, hook: {...INSTALLED, importable: {...INSTALLED.importable, sha256: OTHER}}},
			HOOK_ON,
			'forward hook',
			'critical: that relight_hs is not the one',
		],
		[{...BARE, sglang: null}, {}, 'none', 'critical: /root/ml-env/bin/python3 (3.12.3) finds no sglang'],
	] as const)('case %#', (facts, server, way, words) => {
		const seen = judge(facts, server);
		expect(seen.way).toBe(way);
		expect(seen.bad.some(each => each.startsWith(words))).toBe(true);
	});

	it('without a version in the metadata the module that registers hooks decides', () => {
		const facts = {...withPackage({version: null}), hook: INSTALLED};
		expect(judge(facts, HOOK_ON).way).toBe('forward hook');
		expect(judge({...facts, sglang: facts.sglang && {...facts.sglang, hooks: false}}, HOOK_ON).way).toBe('none');
	});

	it('twice is told, and so is what went wrong in the last server', () => {
		const status = {
			pid: 7,
			moduleSha256: OWN,
			slots: [],
			written: 12,
			refused: 1,
			exceptions: 2,
			lastError: 'OSError(28)',
			savedAt: 1,
		};
		const facts = {...withPackage({source: SOURCE, bytecode: null}), hook: INSTALLED, status};
		const {way, bad} = judge(facts, {...HOOK_ON, env: {...HOOK_ON.env, ...PATCH_ON.env}});
		expect(way).toBe('both');
		expect(bad).toEqual([
			'warning: last server with the hook (pid 7): 12 written, 1 refused, 2 exceptions; last error: OSError(28)',
			'warning: patch and hook are both active: each request would be dumped twice',
		]);
	});
});
