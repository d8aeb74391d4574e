import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {describe, expect, it} from 'vitest';
import {files} from '../../../src/ops/probes/files.ts';
import type {Target} from '../../../src/ops/target.ts';
import {contextOf, look, makeTree, pathWith} from './support.ts';

const PYTHON = spawnSync('sh', ['-c', 'command -v python3'], {encoding: 'utf8'}).stdout.trim();
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const PATCHED = 'sglang/python/sglang/srt/models/deepseek_v2.py';

function target(root: string, hash: string | null = null): Partial<Target> {
	const file = (destination: string) => ({source: '', destination, sha256: hash, mode: '644'});
	return {
		server: {
			python: `${root}/bin/python3`,
			tree: `${root}/sglang`,
			model: `${root}/model dir`,
			port: 8000,
			env: {},
			args: [],
			log: `${root}/logs`,
			name: 'x',
			phaseLimitMs: 1,
		},
		files: [file(`${root}/hook.py`), file(`${root}/it's gone.py`)],
	};
}

describe('files that the work needs', () => {
	it('are there, whole, and volatile or not', async () => {
		const tree = makeTree({
			'bin/python3': '#!/bin/sh\n',
			'hook.py': 'print(1)\n',
			'model dir/config.json': '{}',
			[PATCHED]: 'def _hs_dump_dir():\n',
			'proc/self/mountinfo': '',
		});
		const {root} = tree;
		const proc = makeTree({
			'self/mountinfo': `1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / ${root} rw - ext4 /dev/sdb rw\n`,
		});
		const facts = await look(files, contextOf({target: target(root, sha256('print(1)\n'))}), {proc: proc.root});
		const plain = {sha256: null, volatile: false};
		expect(facts).toEqual({
			node: process.versions.node,
			machine: spawnSync('uname', ['-m'], {encoding: 'utf8'}).stdout.trim(),
			files: [
				{...plain, path: `${root}/bin/python3`, role: 'python', state: 'present', bytes: 10},
				{...plain, path: `${root}/model dir`, role: 'model', state: 'present', bytes: null},
				{...plain, path: `${root}/${PATCHED}`, role: 'patch', state: 'present', bytes: 20},
				{...plain, path: `${root}/hook.py`, role: 'other', state: 'present', bytes: 9, sha256: sha256('print(1)\n')},
				{...plain, path: `${root}/it's gone.py`, role: 'other', state: 'gone', bytes: null},
			],
			patch: {path: `${root}/${PATCHED}`, state: 'present'},
			// This stand-in prints nothing.
			hook: {state: 'unknown', why: `${root}/bin/python3 gave no answer that fits: `},
		});
		const other = await look(files, contextOf({target: target(root, sha256('other'))}));
		expect(other.files.map(({state, volatile}) => [state, volatile])).toEqual([
			['present', true],
			['present', true],
			['present', true],
			['differs', true],
			['gone', true],
		]);
		tree.remove();
		proc.remove();
	});

	it('no patch marker, no file', async () => {
		const tree = makeTree({[PATCHED]: 'plain\n'});
		const absent = await look(files, contextOf({target: target(tree.root)}));
		expect(absent.patch?.state).toBe('absent');
		const nothing = await look(files, contextOf({target: target('/nonexistent')}));
		expect(nothing.patch?.state).toBe('no file');
		expect(nothing.hook).toEqual({state: 'unknown', why: expect.stringContaining('No such file or directory')});
		expect(files.script(contextOf())).toBeNull();
		tree.remove();
	});

	it.each([
		['is not there', 'exit 127', 'aarch64', {node: '', machine: 'aarch64'}],
		['hangs', 'exec sleep 20', 'x86_64', {node: '', machine: 'x86_64'}],
		['is there, and what says the processor is not', 'echo v18.20.4', '', {node: '18.20.4', machine: null}],
	])('a Node that %s', async (_name, node, machine, seen) => {
		const uname = machine === '' ? 'exit 127' : `[ "$*" = -m ] && echo ${machine}`;
		const tree = makeTree({'bin/node': `#!/bin/sh\n${node}\n`, 'bin/uname': `#!/bin/sh\n${uname}\n`});
		const facts = await look(files, contextOf({target: target(tree.root)}), {path: pathWith(tree.root)});
		expect({node: facts.node, machine: facts.machine}).toEqual(seen);
		tree.remove();
	});

	it('a path on a dead mount costs its own line alone', async () => {
		const tree = makeTree({
			'bin/stat': '#!/bin/sh\ncase "$*" in *hook.py*) exec sleep 20 ;; esac\nexec /usr/bin/stat "$@"\n',
			'bin/python3': 'x',
			'hook.py': 'x',
		});
		const facts = await look(files, contextOf({target: target(tree.root)}), {path: pathWith(tree.root)});
		expect(facts.files.map(({state}) => state)).toEqual(['present', 'gone', 'gone', 'no answer', 'gone']);
		tree.remove();
	});

	it.skipIf(!PYTHON)(
		'what the server’s own Python would import is asked of it, with the launch’s environment',
		async () => {
			const tree = makeTree({
				'site/sglang/srt/models/deepseek_v2.py': '_hs_dump_dir = 1\n',
				'site/sglang-0.5.12.dist-info/METADATA': 'Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.12\n',
				"it's/relight_hs.py": 'x = 1\n',
			});
			const {root} = tree;
			const server = {
				...(target(root).server as NonNullable<Target['server']>),
				python: PYTHON,
				env: {PYTHONPATH: `${root}/site:${root}/it's`},
			};
			const hook = {source: '', destination: `${root}/it's/relight_hs.py`, sha256: null, mode: '644'};
			const {hook: seen} = await look(files, contextOf({target: {server, files: [hook]}}));
			expect(seen).toMatchObject({
				state: 'seen',
				facts: {
					sglang: {version: '0.5.12', source: {path: `${root}/site/sglang/srt/models/deepseek_v2.py`, marked: true}},
					hook: {importable: {path: `${root}/it's/relight_hs.py`}, placed: {path: `${root}/it's/relight_hs.py`}},
				},
			});
			tree.remove();
		},
	);

	it.each([
		['one that hangs', 'exec sleep 20', /^.*python3 did not answer: is a mount dead that sglang lies on\?$/],
		['one that is broken', 'echo No module named encodings >&2; exit 1', /python3: No module named encodings$/],
		['one that ends while its child holds the pipe', 'sleep 20 & exit 3', /python3: exit 3|did not answer/],
	])('a Python that does not answer is told apart from an answer: %s', async (_name, body, why) => {
		const tree = makeTree({'bin/python3': `#!/bin/sh\n${body}\n`});
		const {hook, files: seen} = await look(files, contextOf({target: target(tree.root)}));
		expect(hook).toEqual({state: 'unknown', why: expect.stringMatching(why)});
		expect(seen[0]?.state).toBe('present');
		tree.remove();
	});
});
