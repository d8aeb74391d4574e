import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, describe, expect, it} from 'vitest';
import {readConfig} from '../../../src/ops/config/config.ts';
import {isRefusal, type Situation} from '../../../src/ops/operations/operation.ts';
import {extractorPlan} from '../../../src/ops/operations/run-extractor.ts';
import {sendExtractor} from '../../../src/ops/operations/send-extractor.ts';
import type {BuiltExtractor, Executable, ExtractionConfig} from '../../../src/ops/target.ts';
import {NOW, sampleFacts} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

const BUNDLE = join(import.meta.dirname, '../../../dist/extractor.mjs');
const folder = mkdtempSync(join(tmpdir(), 'relight-send-'));
afterAll(() => rmSync(folder, {recursive: true}));

const SUM = '5e'.repeat(32);
const X64: Executable = {
	architecture: 'x64',
	source: '/dist/relight-extractor-linux-x64',
	bytes: 87_296_768,
	sha256: SUM,
};
const BUILT: BuiltExtractor = {here: 'linux-x64', bundle: BUNDLE, executables: []};
const WITH_X64: BuiltExtractor = {...BUILT, executables: [X64]};

type Host = {readonly node?: string | null; readonly machine?: string | null; readonly built?: BuiltExtractor};
const here = (
	{node = '20.19.2', machine = 'x86_64', built = BUILT}: Host = {},
	change: Partial<ExtractionConfig> = {},
): Situation => ({
	target: {
		...sampleTarget,
		extraction: sampleTarget.extraction && {...sampleTarget.extraction, program: null, built, ...change},
	},
	facts: factsOf({...sampleFacts, files: {...sampleFacts.files, node, machine}}),
	nowMs: NOW,
});
const sent = (situation: Situation, flags: readonly string[] = []) => {
	const made = sendExtractor(situation, flags);
	if (isRefusal(made)) throw new Error(made.refused);
	return made;
};

const STAMP = NOW.toString(36);
const LOGS = sampleTarget.extraction?.log.replace(/\/[^/]*$/, '');
const PLACE = `${LOGS}/relight-extractor-`;

describe('the program that is sent', () => {
	it.each<[name: string, host: Host]>([
		['where no executable was built', {}],
		['where one was built', {built: WITH_X64}],
		['whatever its processor is', {machine: null, node: '22.11.0'}],
	])('is the one file where the host has Node, %s', (_name, host) => {
		const {steps, argv} = sent(here(host), ['--adopt']);
		expect(steps[0]).toEqual({
			kind: 'send',
			id: 'program',
			says: 'send the extractor, check it on the host, put it in place in one step',
			source: BUNDLE,
			sha256: null,
			script: `mkdir -p ${LOGS} && cat >${PLACE}${STAMP}.mjs.part && sync ${PLACE}${STAMP}.mjs.part && mv -f ${PLACE}${STAMP}.mjs.part ${PLACE}${STAMP}.mjs && sha256sum <${PLACE}${STAMP}.mjs`,
			limitMs: 120_000,
		});
		expect(argv).toEqual(['node', `${PLACE}${STAMP}.mjs`, '--config', `${PLACE}${STAMP}.json`, '--adopt']);
	});

	it.each<[name: string, node: string]>([
		['no Node', ''],
		['a Node that is too old', '18.20.4'],
	])('is the executable for its processor where the host has %s', (_name, node) => {
		const arm: Executable = {architecture: 'arm64', source: '/dist/arm', bytes: 9, sha256: '9a'.repeat(32)};
		const {steps, argv} = sent(here({node, built: {...BUILT, executables: [arm, X64]}}), ['--adopt']);
		expect(steps.map(({id}) => id)).toEqual(['program', 'config']);
		expect(steps[0]).toEqual({
			kind: 'send',
			id: 'program',
			says: 'send the extractor with a Node inside (87 MB, not where it is there already), check and try it on the host, put it in place in one step',
			source: '/dist/relight-extractor-linux-x64',
			sha256: SUM,
			pieceBytes: 131_072,
			script: `p=${PLACE}5e5e5e5e5e5e5e5e
good() {
  [ -f "$1" ] || return 1
  [ "$(sha256sum <"$1")" = '${SUM}  -' ] || { echo "$1 is not what was sent"; return 1; }
  "$1" --version </dev/null
}
take() {
  : >"$1" && n=0 || return
  while [ $n -lt 667 ]; do head -c 131072 >>"$1" || return; printf '\\006'; n=$((n+1)); done
}
good "$p" || {
  mkdir -p "\${p%/*}/" && take "$p.part" && chmod 755 "$p.part" && sync "$p.part" && good "$p.part" && mv -f "$p.part" "$p"
} || { r=$?; rm -f "$p.part"; exit $r; }
sha256sum <"$p"`,
			limitMs: 758_375,
		});
		expect(argv).toEqual([`${PLACE}5e5e5e5e5e5e5e5e`, '--config', `${PLACE}${STAMP}.json`, '--adopt']);
		const elsewhere = sent(here({node, machine: 'aarch64', built: {...BUILT, executables: [arm, X64]}}));
		expect(elsewhere.steps[0]).toMatchObject({source: '/dist/arm', sha256: arm.sha256});
	});

	const NO_NODE = 'the host has no Node in its PATH, 20.19 is the least';
	it.each<[name: string, host: Host, words: string]>([
		[
			'what it has is not known',
			{node: null},
			'whether the host has Node is not known: the last look failed or has not come',
		],
		[
			'it has none and no executable was built',
			{node: ''},
			`${NO_NODE}, and the executable that needs none was not built here: npm run build:standalone, then again`,
		],
		[
			'its own is too old and no executable was built',
			{node: '20.18.9'},
			'the host has Node 20.18.9 in its PATH, 20.19 is the least, and the executable that needs none was not built here: npm run build:standalone, then again',
		],
		[
			'the executable is for another processor',
			{node: '', machine: 'aarch64', built: WITH_X64},
			`${NO_NODE}, and an executable for its arm64 cannot be built on this linux-x64 (the one here is for x64): npm run build:standalone on a linux-arm64, copy dist/relight-extractor-linux-arm64 and its .json here, then again`,
		],
		[
			'it could not be built here at all',
			{node: '', built: {...BUILT, here: 'darwin-x64'}},
			`${NO_NODE}, and an executable for its x64 cannot be built on this darwin-x64: npm run build:standalone on a linux-x64, copy dist/relight-extractor-linux-x64 and its .json here, then again`,
		],
		[
			'there is no Node for its processor',
			{node: '', machine: 'riscv64', built: WITH_X64},
			`${NO_NODE}, and there is none for its processor (riscv64): set extraction.program`,
		],
		[
			'its processor is not known',
			{node: '', machine: null, built: WITH_X64},
			`${NO_NODE}, and which processor it has is not known: look again`,
		],
	])('is none where %s', (_name, host, words) => {
		expect(sendExtractor(here(host), [])).toEqual({refused: words});
	});

	it('is none where nothing was built', () => {
		const {built, ...bare} = here().target.extraction as ExtractionConfig;
		expect(sendExtractor({...here(), target: {...sampleTarget, extraction: bare}}, [])).toEqual({
			refused: 'the extractor was not built here: npm run build, or set extraction.program',
		});
	});
});

describe('the extractor that is sent', () => {
	it('comes with the part of the configuration that it reads, and reads the same out of it', () => {
		const [, config] = sent(here()).steps;
		const text = config?.kind === 'run' ? (config.program ?? '') : '';
		const result = readConfig(text, 'sent.json');
		if (!result.ok) throw new Error(JSON.stringify(result.troubles));
		const {extraction, server, dump} = result.targets[0] ?? {};
		const {script, program, config: own, built, confirmMs, ...wanted} = here().target.extraction as ExtractionConfig;
		expect(extraction).toMatchObject(wanted);
		expect(server).toMatchObject({model: sampleTarget.server?.model, port: sampleTarget.server?.port});
		expect(dump).toEqual(sampleTarget.dump);
	});

	it.each<[name: string, host: Host, start: RegExp]>([
		['the one file', {}, /-- node \S+\.mjs --config \S+\.json --adopt$/],
		['the executable', {node: '', built: WITH_X64}, /-- \/\S+\/relight-extractor-(5e){8} --config \S+\.json --adopt$/],
	])('is in the plan before its start, with --adopt for a tree without a manifest: %s', (_name, host, starts) => {
		const plan = extractorPlan(here(host));
		if (isRefusal(plan)) throw new Error(plan.refused);
		expect(plan.steps.map(({id}) => id)).toEqual(['program', 'config', 'start', 'record', 'new-file', 'motion']);
		const gone = {
			role: 'manifest' as const,
			path: '/x',
			state: 'gone' as const,
			bytes: null,
			sha256: null,
			volatile: false,
		};
		const {node = '20.19.2'} = host;
		const files = {...sampleFacts.files, node, files: [gone]};
		const old = extractorPlan({...here(host), facts: factsOf({...sampleFacts, files})});
		if (isRefusal(old)) throw new Error(old.refused);
		const start = old.steps.find(({id}) => id === 'start');
		expect(start?.kind === 'run' ? start.script : '').toMatch(starts);
		expect(old.warnings[0]).toContain('no manifest: all 18421 files are looked at');
	});

	it('arrives whole or not at all, and runs', () => {
		const log = join(folder, 'logs/extraction.log');
		const place = {
			log,
			dataset: join(folder, 'd.jsonl'),
			output: join(folder, 'out'),
			progress: join(folder, 'p.json'),
		};
		const {steps, argv} = sent(here({}, place));
		const inputs = [readFileSync(BUNDLE), Buffer.from(steps[1]?.kind === 'run' ? (steps[1].program ?? '') : '')];
		for (const [at, step] of steps.entries()) {
			if (step.kind === 'wait') throw new Error('a look');
			const input = inputs[at] ?? Buffer.alloc(0);
			const cut = spawnSync('sh', ['-c', step.script], {input: input.subarray(0, 9), encoding: 'utf8'});
			if (step.kind === 'run') expect(cut.status).not.toBe(0);
			const ran = spawnSync('sh', ['-c', step.script], {input, encoding: 'utf8'});
			expect(ran.stdout.split(' ')[0]).toBe(createHash('sha256').update(input).digest('hex'));
		}
		mkdirSync(place.output);
		writeFileSync(place.dataset, '');
		const [program = '', ...args] = argv;
		const ended = spawnSync(program, args, {encoding: 'utf8', cwd: '/', timeout: 20_000});
		expect(`${ended.stdout}${ended.stderr}`).toContain(`Dataset: ${place.dataset}`);
		expect(existsSync(place.progress)).toBe(true);
	});
});

describe('the executable', () => {
	/** A small one stands for it: what it says of itself, or how it fails to start. */
	const place = (name: string, body: string) => {
		const content = Buffer.from(`#!/bin/sh\n${body}\n`);
		const sha256 = createHash('sha256').update(content).digest('hex');
		const built = {...BUILT, executables: [{...X64, bytes: content.length, sha256}]};
		const logs = join(folder, `it's ${name}`);
		const {steps, argv} = sent(here({node: '', built}, {log: join(logs, 'extraction.log')}));
		const [step] = steps;
		const script = step?.kind === 'send' ? step.script : '';
		const receive = (input: Buffer) => {
			const ran = spawnSync('sh', ['-c', script], {input, encoding: 'utf8'});
			const out = ran.stdout.replaceAll('\x06', '');
			const said = ran.status === 0 ? out : `${out}${ran.stderr}`;
			return {status: ran.status, last: said.trimEnd().split('\n').at(-1)};
		};
		return {content, sha256, path: argv[0] ?? '', files: () => readdirSync(logs), receive};
	};

	it('takes its place when it is whole and starts, and is not read again', () => {
		const {content, sha256, path, files, receive} = place('whole', 'echo relight 0.1.0');
		const name = `relight-extractor-${sha256.slice(0, 16)}`;
		expect(receive(content.subarray(0, 9))).toEqual({status: 1, last: `${path}.part is not what was sent`});
		expect(files()).toEqual([]);
		expect(receive(content)).toEqual({status: 0, last: `${sha256}  -`});
		expect(files()).toEqual([name]);
		// Nothing comes: it has to be there already.
		expect(receive(Buffer.alloc(0))).toEqual({status: 0, last: `${sha256}  -`});
	});

	it('comes again where what has its name is damaged or was never made to run', () => {
		const {content, sha256, path, receive} = place('damaged', 'echo relight 0.1.0');
		receive(content);
		for (const spoil of [() => writeFileSync(path, 'other'), () => chmodSync(path, 0o644)]) {
			spoil();
			expect(receive(content)).toEqual({status: 0, last: `${sha256}  -`});
			expect(spawnSync(path).stdout.toString()).toBe('relight 0.1.0\n');
		}
	});

	it('does not take its place where it cannot start, and the host says why', () => {
		const why = 'libstdc++.so.6: cannot open shared object file';
		const {content, files, receive} = place('strange', `echo '${why}' >&2; exit 127`);
		expect(receive(content)).toEqual({status: 127, last: why});
		expect(files()).toEqual([]);
	});
});
