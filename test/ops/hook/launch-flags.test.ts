import {describe, expect, it} from 'vitest';
import {hookPlace, hookSpecs, launchFlags} from '../../../src/ops/hook/launch-flags.ts';
import {atLeast, parseVersion} from '../../../src/ops/hook/sglang-version.ts';
import {flagValue} from '../../../src/ops/server/protections.ts';
import {BARE, DUMPS, targetWith, withPackage} from './sample-target.ts';

const OPTIONS = {directory: '/root/relight', staged: false};
const names = (args: readonly (readonly string[])[]) => args.map(words => words[0]);

describe('a version of SGLang', () => {
	it.each([
		['0.5.10', [0, 5, 10]],
		['v0.5.9.post1+cu128', [0, 5, 9]],
		['0.6', [0, 6, 0]],
		['main', null],
		[null, null],
	])('%s', (text, version) => expect(parseVersion(text)).toEqual(version));

	it.each([
		['0.5.9', '0.5.10', false],
		['0.5.10rc2', '0.5.10', true],
		['0.6.0', '0.5.14', true],
		['unknown', '0.5.6', null],
	])('%s, wanted %s: %s', (version, wanted, answer) => expect(atLeast(version, wanted)).toBe(answer));
});

describe('where the hooks belong', () => {
	it('five exact names, one spec each, below the wrapper of Kimi-K2.5', () => {
		const specs = hookSpecs(hookPlace(BARE.model), {rid_prefix: 'relight-'});
		expect(specs.map(({target_modules: modules, config}) => [modules, config])).toEqual([
			[['language_model.model.layers.2.input_layernorm'], {slot: 'aux_0'}],
			[['language_model.model.layers.30.input_layernorm'], {slot: 'aux_1'}],
			[['language_model.model.layers.58.input_layernorm'], {slot: 'aux_2'}],
			[['language_model.model.norm'], {slot: 'final'}],
			[['language_model.model'], {slot: 'write', layers: [2, 30, 58], rid_prefix: 'relight-'}],
		]);
		expect(new Set(specs.map(spec => spec.hook_factory))).toEqual(new Set(['relight_hs:hook']));
	});

	it('no wrapper for a plain DeepSeek, and other boundaries for another depth', () => {
		const model = {architecture: 'DeepseekV2ForCausalLM', layers: 27, hiddenSize: 2048};
		expect(hookPlace(model)).toEqual({prefix: '', layers: [2, 13, 24]});
		expect(hookPlace(null)).toEqual({prefix: 'language_model.', layers: [2, 30, 58]});
	});
});

describe('what a launch has to pass', () => {
	it('hooks, whole rows, eager passes, and an environment that leads to the module', () => {
		const flags = launchFlags(targetWith(), BARE, OPTIONS);
		expect(names(flags.args)).toEqual([
			'--forward-hooks',
			'--chunked-prefill-size',
			'--disable-radix-cache',
			'--disable-overlap-schedule',
			'--disable-cuda-graph',
			'--disable-piecewise-cuda-graph',
			'--enforce-disable-flashinfer-allreduce-fusion',
		]);
		expect(flags.env).toEqual([
			['PYTHONPATH', '/root/relight'],
			['RELIGHT_HS_DUMP_DIR', DUMPS],
			['SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION', 'false'],
		]);
		expect(flags.notes).toEqual([]);
		const [, json = ''] = flags.args[0] ?? [];
		expect(JSON.parse(json)).toEqual(hookSpecs(hookPlace(BARE.model), {rid_prefix: 'relight-'}));
	});

	it.each([
		['0.5.9', ['--disable-cuda-graph'], ['does not tell a hook which request']],
		[
			'0.5.10',
			['--disable-cuda-graph', '--disable-piecewise-cuda-graph', '--enforce-disable-flashinfer-allreduce-fusion'],
			[],
		],
		['0.5.14', ['--disable-cuda-graph', '--enforce-disable-flashinfer-allreduce-fusion'], []],
		['0.5.5', ['--disable-cuda-graph'], ['has no --forward-hooks', 'does not tell a hook which request']],
	])('differs by version: %s', (version, last, notes) => {
		const flags = launchFlags(targetWith(), withPackage({version}), OPTIONS);
		expect(names(flags.args).slice(4)).toEqual(last);
		expect(flags.notes.map(note => notes.find(each => note.includes(each)))).toEqual(notes);
		expect(flags.args[0]?.[1]?.includes('"nameless":"ids"')).toBe(version === '0.5.9' || version === '0.5.5');
	});

	it('only what is not said already; another value is named, not doubled in silence', () => {
		const target = targetWith({
			args: ['--disable-radix-cache', '--chunked-prefill-size', '8192', '--forward-hooks=[]'],
			env: {PYTHONPATH: '/root/relight:/opt/lib', RELIGHT_HS_DUMP_DIR: DUMPS},
		});
		const flags = launchFlags(target, BARE, OPTIONS);
		expect(names(flags.args)).not.toContain('--disable-radix-cache');
		expect(flags.args).toContainEqual(['--chunked-prefill-size', '-1']);
		expect(flags.notes).toEqual([
			'--forward-hooks is in server.args with another value ([]): it must be replaced',
			'--chunked-prefill-size is in server.args with another value (8192): it must be replaced',
			'--disable-radix-cache is already in server.args',
		]);
		expect(flags.env.map(([name]) => name)).toEqual(['SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION']);
	});

	it('keeps what PYTHONPATH held, and says what it had to assume', () => {
		const target = targetWith({env: {PYTHONPATH: '/opt/lib'}}, {dump: null});
		const flags = launchFlags(target, {...withPackage({version: null}), model: null}, OPTIONS);
		expect(flags.env[0]).toEqual(['PYTHONPATH', '/root/relight:/opt/lib']);
		expect(flags.notes).toHaveLength(3);
	});
});

it.each([
	[['--a', '1', '--b'], '--a', '1'],
	[['--a', '-1'], '--a', '-1'],
	[['--a', '--b'], '--a', ''],
	[['--b', '--a'], '--a', ''],
	[['--a=x=y'], '--a', 'x=y'],
	[['--aa', '1'], '--a', null],
])('value of a flag in %j', (args, flag, value) => expect(flagValue(args, flag)).toBe(value));
