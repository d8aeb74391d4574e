import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, describe, expect, it} from 'vitest';
import {readConfig} from '../../../src/ops/config/config.ts';
import {isRefusal, type Situation} from '../../../src/ops/operations/operation.ts';
import {extractorPlan} from '../../../src/ops/operations/run-extractor.ts';
import {sendExtractor} from '../../../src/ops/operations/send-extractor.ts';
import type {ExtractionConfig} from '../../../src/ops/target.ts';
import {NOW, sampleFacts} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

const BUNDLE = join(import.meta.dirname, '../../../dist/extractor.mjs');
const folder = mkdtempSync(join(tmpdir(), 'relight-send-'));
afterAll(() => rmSync(folder, {recursive: true}));

const here = (node: string | null, change: Partial<ExtractionConfig> = {}): Situation => ({
	target: {
		...sampleTarget,
		extraction: sampleTarget.extraction && {...sampleTarget.extraction, program: null, bundle: BUNDLE, ...change},
	},
	facts: factsOf({...sampleFacts, files: {...sampleFacts.files, node}}),
	nowMs: NOW,
});
const sent = (situation: Situation, flags: readonly string[] = []) => {
	const made = sendExtractor(situation, flags);
	if (isRefusal(made)) throw new Error(made.refused);
	return made;
};

describe('the extractor that is sent', () => {
	it.each([
		['', 'the host has no Node in its PATH'],
		['18.20.4', 'the host has Node 18.20.4 in its PATH, 20.19 is the least'],
		['20.18.9', 'the host has Node 20.18.9'],
		[null, 'whether the host has Node is not known'],
	])('is refused where Node is %s', (node, words) => {
		const made = sendExtractor(here(node), []);
		expect(isRefusal(made) ? made.refused : 'planned').toContain(words);
	});

	it('comes with the part of the configuration that it reads, and reads the same out of it', () => {
		const [, config] = sent(here('22.11.0')).steps;
		const text = config?.kind === 'run' ? (config.program ?? '') : '';
		const result = readConfig(text, 'sent.json');
		if (!result.ok) throw new Error(JSON.stringify(result.troubles));
		const {extraction, server, dump} = result.targets[0] ?? {};
		const {script, program, config: own, bundle, confirmMs, ...wanted} = here('').target.extraction as ExtractionConfig;
		expect(extraction).toMatchObject(wanted);
		expect(server).toMatchObject({model: sampleTarget.server?.model, port: sampleTarget.server?.port});
		expect(dump).toEqual(sampleTarget.dump);
	});

	it('is in the plan before its start, with --adopt for a tree without a manifest', () => {
		const plan = extractorPlan(here('20.19.2'));
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
		const files = {...sampleFacts.files, node: '20.19.2', files: [gone]};
		const old = extractorPlan({...here('20.19.2'), facts: factsOf({...sampleFacts, files})});
		if (isRefusal(old)) throw new Error(old.refused);
		const start = old.steps.find(({id}) => id === 'start');
		expect(start?.kind === 'run' ? start.script : '').toMatch(/-- node \S+\.mjs --config \S+\.json --adopt$/);
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
		const {steps, argv} = sent(here('20.19.2', place));
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
