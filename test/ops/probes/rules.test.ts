import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {describe, expect, it} from 'vitest';
import {quote} from '../../../src/ops/command.ts';
import {bad, Complaint, good, ParseError} from '../../../src/ops/outcome.ts';
import {capture, DEFINE_CAPTURE} from '../../../src/ops/probes/capture.ts';
import {PROBES} from '../../../src/ops/probes/catalogue.ts';
import {type Ask, observe} from '../../../src/ops/probes/observe.ts';
import type {Probe, ProbeContext} from '../../../src/ops/probes/probe.ts';
import type {Target} from '../../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';
import {answerOf, contextOf, look, makeTree, NOW_MS, pathWith, runScript} from './support.ts';

/** The incident's paths, and as many hints as a look can have. */
const target: Partial<Target> = {
	routes: [
		{
			ssh: 'root@pve',
			through: ['pct', 'exec', '129', '--'],
			identityFile: null,
			knownHostsFile: null,
			environment: SYSTEM_ENVIRONMENT,
		},
	],
	expect: {
		gpus: 8,
		mounts: ['/data', '/shared', '/dev/shm'].map(path => ({
			path,
			type: null,
			source: null,
			volume: '6f1c2a5e-0000-4000-8000-000000000000',
			freeBytes: null,
		})),
	},
	unwanted: ['vllm-*.service'],
	server: {
		python: '/root/ml-env/bin/python3',
		tree: '/root/sglang',
		model: '/shared/kimi-k2.5-int4',
		port: 8000,
		env: {},
		args: [],
		log: '/data/eagle3/synth_100k/logs',
		name: 'sglang-kimi',
		phaseLimitMs: 1,
	},
	dump: {dir: '/dev/shm/sglang_hs', limitBytes: null},
	extraction: {
		dataset: '/data/eagle3/synth_100k/merged.json',
		records: 37_312,
		tokens: null,
		output: '/data/eagle3/synth_100k/hidden_states',
		layout: 'legacy',
		groupSize: 2000,
		hiddenSize: 7168,
		maxTokens: 8192,
		overlength: 'truncate',
		concurrency: 4,
		progress: '/data/eagle3/synth_100k/extraction-progress.json',
		script: {source: '', destination: '/tmp/02b_extract_hidden_states_sglang.py', sha256: null, mode: '644', argv: []},
		program: [],
		config: null,
		log: '/data/eagle3/synth_100k/logs/extraction2.log',
		confirmMs: 1,
	},
	files: [],
};
const pids = Array.from({length: 64}, (_, at) => 4_100_000 + at);
const hints = {
	pids,
	unreadLines: pids,
	unreadPackage: '/root/sglang 0.5.23',
	units: ['vllm-kimi-k25-int4.service'],
	log: '/data/eagle3/synth_100k/logs/extraction2.log',
};

const all = Object.values(PROBES) as readonly Probe<unknown>[];
const full = contextOf<unknown>({target, hints});

describe('every probe', () => {
	it.each(all.map(probe => [probe.id, probe] as const))(
		'%s sends a small script without the pid of the lane',
		(id, probe) => {
			expect(PROBES[probe.id]).toBe(probe);
			const whole = probe.script(full) ?? '';
			const script = whole.replace(/<<'RELIGHT'\n[\s\S]*?\nRELIGHT\n/, '');
			expect(whole.length - script.length).toBeLessThan(6_144);
			expect([id, script.length > 0, script.length < 2048, script.includes('$$')]).toEqual([id, true, true, false]);
		},
	);

	it.each(all.map(probe => [probe.id, probe] as const))('%s sends what dash and bash both take', async (_, probe) => {
		for (const shell of ['dash', 'bash']) {
			const check = await runScript(`${shell} -n -c ${quote(probe.script(full) ?? '')} 2>&1`);
			expect([check.status, check.stdout]).toEqual([0, '']);
		}
	});

	it('keeps its script small also on the busiest box', async () => {
		const table = await look(PROBES.processes, contextOf());
		const [one] = table.processes;
		if (!one) throw new Error('no process');
		const many = pids.map(pid => ({...one, pid, state: 'D', parentPid: 1}));
		const unowned = many.map((process, at) => ({...process, pid: 3_000_000 + at, owner: {kind: 'unknown' as const}}));
		const paths = Array.from({length: 60}, (_, at) => `/srv/volumes/with/long/names/of/forty/characters/${at}`);
		const lines = paths.map((path, at) => `${at + 100} 1 0:${at} / ${path} rw - xfs /dev/x${at} rw`).join('\n');
		const holder = {startTicks: 1, memory: [], devices: ['nvidia0'], driverName: ''};
		const files = new Map(
			Array.from({length: 2000}, (_, at) => [
				at * 20,
				{bytes: 9, modifiedAt: 1, whole: null, name: `data_${at * 20}.pt`, suspect: null},
			]),
		);
		const groups = Array.from({length: 40}, (_, at) => ({
			name: `rows_${at * 2000}-${at * 2000 + 2000}`,
			from: at * 2000,
			to: at * 2000 + 2000,
			modifiedAt: 0,
			present: files.size,
			bytes: 9,
			newestAt: at,
			temporaries: 0,
			unchecked: files.size,
			files,
		}));
		const inventory = {
			expected: null,
			present: 0,
			complete: 0,
			holes: [],
			suspects: [],
			groups,
			bytes: 0,
			newestAt: null,
			newestPath: null,
			temporaries: 0,
			quarantined: 0,
		};
		const late = {
			target,
			hints: {...hints, nowMs: NOW_MS + 2000, units: paths.map((_, at) => `a-service-with-a-name-${at}.service`)},
		};
		const sizes = [
			PROBES.processes.script(contextOf({...late, last: {...table, processes: [...many, ...unowned], scanMs: 50_000}})),
			PROBES.holders.script(
				contextOf({
					...late,
					last: {
						bootId: 'b',
						holders: pids.map(pid => ({...holder, pid})),
						driverList: 'none',
						sweptAt: NOW_MS,
						sweepMs: 1,
						searched: [],
					},
				}),
			),
			PROBES.mounts.script(
				contextOf({
					...late,
					last: PROBES.mounts.parse(answerOf({table: lines, mounts: '', volumes: '', sizes: ''}), contextOf()),
				}),
			),
			PROBES.services.script(contextOf(late)),
			PROBES.extraction.script(
				contextOf({...late, last: {inventory, run: null, dumps: [], script: 'gone', listedAt: '1767225600.123456789'}}),
			),
			PROBES['command-lines'].script(
				contextOf({...late, last: {lines: new Map(pids.slice(0, 40).map(pid => [`${pid}@123456789`, null]))}}),
			),
		].map(script => script?.length ?? 0);
		expect(sizes.filter(size => size === 0 || size >= 2048)).toEqual([]);
	});
});

describe('four dead file calls cannot take the whole program', () => {
	it('no probe and no format touches a file system in the console itself', () => {
		const folders = ['probes', 'formats', 'server'].map(name => join(import.meta.dirname, '../../../src/ops', name));
		const offenders = folders.flatMap(folder =>
			readdirSync(folder)
				.filter(name => name.endsWith('.ts'))
				.filter(name =>
					/from '(node:)?(fs|fs\/promises|child_process|path|os|net|http)'|process\.(cwd|chdir)|import\(/.test(
						readFileSync(join(folder, name), 'utf8'),
					),
				),
		);
		expect(offenders).toEqual([]);
	});
});

describe('a child that holds the pipe does not hold the shell', () => {
	it('ends by its own limit although the output stays open', async () => {
		const startedAt = Date.now();
		const script = `${DEFINE_CAPTURE}; ${capture('x', 1, "sh -c 'setsid sleep 20 & echo out; sleep 20'")}; echo "[$r] $x"`;
		const answer = await runScript(script);
		expect(answer.stdout).toBe('[124] out\n\n');
		expect(Date.now() - startedAt).toBeLessThan(6000);
	});

	it.each([
		['', ''],
		['echo an answer of user@host; ', 'an answer of user@host'],
	])('nor one that cannot be ended, %s', async (says, said) => {
		const tree = makeTree({
			'bin/timeout': `#!/bin/sh\n[ "$1" = -k ] || exec /usr/bin/timeout "$@"\n${says}exec sleep 8\n`,
		});
		const script = `${DEFINE_CAPTURE}; b=$(date +%s); ${capture('x', 1, 'anything')}; echo "[$r] $x"; [ $(($(date +%s)-b)) -lt 6 ] && echo soon`;
		const answer = await runScript(script, {path: pathWith(tree.root)});
		expect(answer.stdout).toBe(`[124] ${said}\nsoon\n`);
		tree.remove();
	});
});

describe('observe', () => {
	const probe: Probe<string> = {
		id: 'log',
		lane: 'files',
		everyMs: 1,
		limitMs: 2,
		capBytes: 3,
		script: () => 'script',
		parse: answer => {
			if (answer.stdout === 'odd') throw new ParseError('tool', 'odd line');
			if (answer.stdout === 'cannot') throw new Complaint('tool', 'cannot', 'do this');
			if (answer.stdout === 'bug') throw new TypeError('bug');
			return answer.stdout;
		},
	};
	const context: ProbeContext<string> = contextOf();
	const answering =
		(stdout: string): Ask =>
		async (lane, script, limits) => {
			expect([lane, script, limits]).toEqual(['files', 'script', {limitMs: 2, capBytes: 3}]);
			return good({status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)});
		};

	it('gives the value, or the failure of the way as it is', async () => {
		expect(await observe(probe, 'script', context, answering('fine'))).toEqual(good('fine'));
		const lost = bad({kind: 'lost', detail: 'x'});
		expect(await observe(probe, 'script', context, async () => lost)).toBe(lost);
	});

	it('turns what parsers throw into failures, and nothing else', async () => {
		expect(await observe(probe, 'script', context, answering('odd'))).toEqual(
			bad({kind: 'unparseable', tool: 'tool', line: 'odd line'}),
		);
		expect(await observe(probe, 'script', context, answering('cannot'))).toEqual(
			bad({kind: 'complaint', tool: 'tool', says: 'cannot', advice: 'do this'}),
		);
		await expect(observe(probe, 'script', context, answering('bug'))).rejects.toThrow(TypeError);
	});
});
