import {afterEach, describe, expect, it} from 'vitest';
import {flags} from '../../../src/ops/probes/flags.ts';
import type {ServerConfig} from '../../../src/ops/target.ts';
import {contextOf, fixture, look, makeTree, NOW_MS} from './support.ts';

const trees: ReturnType<typeof makeTree>[] = [];
afterEach(() => {
	for (const tree of trees.splice(0)) tree.remove();
});

/** A server whose Python is this script. */
function serverOf(script: string): ServerConfig {
	const tree = makeTree({'bin/python3': `#!/bin/sh\n${script}\n`});
	trees.push(tree);
	return {
		...{python: `${tree.root}/bin/python3`, tree: null, model: '/m', port: 1, env: {A: 'b c'}, args: []},
		...{log: '/l', name: 'n', phaseLimitMs: 1},
	};
}
const hints = {unreadPackage: '/sglang 0.5.23'};
const asked = (script: string) => look(flags, contextOf({target: {server: serverOf(script)}, hints}));

describe('the flags of an SGLang whose source does not tell them', () => {
	it('are those of its own help, asked as a launch would run it', async () => {
		const help = fixture('sglang/help-0.5.23.txt');
		const found = await asked(`[ "$A$*" = 'b c-m sglang.launch_server --help' ] && cat <<'TEXT'\n${help}TEXT`);
		expect(found).toEqual({
			key: '/sglang 0.5.23',
			flags: [
				'--cuda-graph-backend-decode',
				'--cuda-graph-backend-prefill',
				'--help',
				'--host',
				'--model',
				'--model-path',
				'--port',
				'--tensor-parallel-size',
				'--tp-size',
				'--trust-remote-code',
			],
			why: '',
			askedAt: NOW_MS,
		});
	});

	it.each([
		[
			'fails',
			'echo Traceback; echo "ModuleNotFoundError: No module named torch" >&2; exit 1',
			/--help: ModuleNotFoundError: No module named torch$/,
		],
		['says nothing', 'exit 3', /--help: exit 3$/],
		['is another program', 'echo "  --verbose   more"', /--help names no flag of a model server$/],
	])('are not known, and why, where that %s', async (_, script, why) => {
		expect(await asked(script)).toMatchObject({flags: null, why: expect.stringMatching(why)});
	});

	it('are asked once for a package, and again half an hour after it could not tell', () => {
		const server = serverOf('');
		const script = (
			last: {key: string; flags: readonly string[] | null; askedAt: number} | null,
			unreadPackage: string | null,
		) => flags.script(contextOf({target: {server}, hints: {unreadPackage}, last: last && {...last, why: ''}})) !== null;
		const key = '/sglang 0.5.23';
		expect([
			script(null, null),
			script(null, key),
			script({key, flags: ['--port'], askedAt: 0}, key),
			script({key: '/sglang 0.5.22', flags: ['--port'], askedAt: NOW_MS}, key),
			script({key, flags: null, askedAt: NOW_MS - 1_000}, key),
			script({key, flags: null, askedAt: NOW_MS - 1_800_000}, key),
		]).toEqual([false, true, false, true, false, true]);
	});

	it('are not waited for longer than a minute', () => {
		const script = flags.script(contextOf({target: {server: serverOf('')}, hints})) ?? '';
		expect(script).toMatch(/timeout -k 1 60 .* & \} \| timeout 62 cat; true$/);
		const unanswered = {status: 0, stdout: '\n@@ relight section help\nhalf', stderr: '', bytes: Buffer.alloc(0)};
		expect(flags.parse(unanswered, contextOf({target: {server: serverOf('')}, hints})).why).toMatch(
			/no answer in 60 s$/,
		);
	});
});
