import {describe, expect, it} from 'vitest';
import type {WrittenEntry} from '../../src/state/journal.ts';
import {type Summary, summaryOf} from '../../src/state/summary.ts';
import {recoveryReport} from '../../src/ui/report.ts';
import {NOW} from './support/sample-facts.ts';
import {sampleState} from './support/sample-state.ts';

const before: Summary = summaryOf(sampleState());
const after: Summary = {
	...before,
	run: {
		state: 'extracting',
		extracted: 412,
		skipped: 18_417,
		errors: 2,
		samplesPerSecond: 1.1,
		tokensPerSecond: 2_582,
		etaMs: {low: 4 * 3_600_000, high: 5 * 3_600_000},
		message: null,
	},
	samples: before.samples && {...before.samples, present: 18_833, whole: 18_833, holes: 0, suspects: 0, quarantined: 4},
};
const entry = (change: Partial<WrittenEntry>): WrittenEntry => ({
	at: NOW,
	kind: 'outcome',
	level: 'ok',
	words: '',
	command: null,
	operator: 'ops1',
	...change,
});
const plan = {
	operation: 'recover' as const,
	title: 'recover ct129',
	targets: ['vllm.service  active'],
	on: ['vllm.service'],
	excluded: ['pid 9 nvidia-persiste: persistence daemon'],
	warnings: ['overridden (port): taken'],
	inverse: 'systemctl enable --now -- vllm.service',
};
const ENTRIES = [
	entry({kind: 'intent', words: 'recover', plan, summary: before}),
	entry({at: NOW + 1_000, kind: 'intent', words: 'stop it', command: 'systemctl stop --no-block -- vllm.service'}),
	entry({at: NOW + 2_000, words: 'stop it: done'}),
	entry({at: NOW + 60_000, words: 'recover ended: done', plan, outcome: 'done', summary: after}),
];

describe('the report', () => {
	it('begins with the six lines of a message', () => {
		expect(recoveryReport('ct129', ENTRIES).split('\n').slice(2, 8)).toEqual([
			'- Skipped: 18,417 samples that were there',
			'- New: 412 samples, 18,479 to go',
			'- Errors: 2',
			'- Rate: 1.10 samples/s, 2582 tokens/s',
			expect.stringMatching(/^- ETA: 4h00m–5h00m from \d\d:\d\d:\d\d$/),
			'- Space: - free on /data',
		]);
	});

	it('has the cause, the literal commands, before and after, and what is open', () => {
		const text = recoveryReport('ct129', ENTRIES);
		for (const part of [
			'  - comes back at boot: enabled',
			'### ',
			'- on vllm.service  active',
			'- left alone: pid 9 nvidia-persiste: persistence daemon',
			'- note: overridden (port): taken',
			'- way back: systemctl enable --now -- vllm.service',
			'```sh\nsystemctl stop --no-block -- vllm.service\n```',
			'| samples | 18,417 whole of 37,312, 3 not looked at yet, 3 holes, 1 suspect, 0 set aside | 18,833 whole of 37,312, 0 holes, 0 suspect, 4 set aside |',
			'ended: **done**',
			'- free space of the output',
		])
			expect(text).toContain(part);
	});

	it('says what is not known, and never counts it as nothing', () => {
		const blank: Summary = {
			cards: null,
			units: null,
			server: null,
			samples: null,
			run: null,
			output: null,
			alerts: [],
			causes: [],
		};
		const text = recoveryReport('ct129', [entry({kind: 'intent', plan, summary: blank})]);
		expect(text).toContain('- New: not known samples'.replace(' samples', ''));
		expect(text).toContain('| cards | not known | not known |');
		expect(text).toContain('- whether the extraction goes on');
		expect(text).not.toMatch(/\b0 (samples|whole)/);
	});

	it('lets no text of a host end a fence, open a link or bring an escape', () => {
		const text = recoveryReport('ct129', [
			...ENTRIES,
			entry({kind: 'intent', words: 'a\u001b[31m](http://x)\n# title', command: 'echo ```\n```\n# not a title'}),
		]);
		expect(text).not.toContain('\u001b');
		expect(text).toContain('a^\\[\\[31m\\](http://x)\\\\n\\# title');
		expect(text).toContain('````sh\necho ```\n```\n# not a title\n````');
	});

	it('is one sentence where nothing was done', () => {
		expect(recoveryReport('ct129', [])).toBe('# ct129\n\nNothing was done in this journal.\n');
	});
});
