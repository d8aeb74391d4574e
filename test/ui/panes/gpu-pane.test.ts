import {describe, expect, it} from 'vitest';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {selectGpus} from '../../../src/state/selectors/gpus.ts';
import {gpuPaneRows} from '../../../src/ui/panes/gpu-pane.tsx';
import {linesOf, tonesOf} from '../support/lines.ts';
import {gpu, NOW, sampleFacts} from '../support/sample-facts.ts';
import {factsOf, sampleState} from '../support/sample-state.ts';

const FRAME = {width: 79, height: 12, focused: true, titled: true};

const cards = (...rows: ReturnType<typeof gpu>[]) =>
	selectGpus(sampleState({facts: factsOf({...sampleFacts, gpus: {cards: rows, lost: [], moreAt: 0}})}));

describe('the GPU pane', () => {
	it('says in words what each card is at, who holds it and what is wrong with it', () => {
		expect(linesOf(gpuPaneRows(selectGpus(sampleState()), FRAME))).toEqual([
			'━[1 GPU]  8x RTX PRO 6000 Blackwell ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ age 0.6s ━',
			'  # STATE     UTIL  MEM USED/TOT GiB TEMP ERRORS    HELD BY',
			'> 0 held idle   0%  79%    75.8/96.0  40C -         vllm-kimi-k25-int4.service',
			'  1 held idle   0%  79%    75.8/96.0  41C -         vllm-kimi-k25-int4.service',
			'  2 held idle   0%  79%    75.8/96.0  42C -         vllm-kimi-k25-int4.service',
			'  3 held idle   0%  79%    75.8/96.0  43C x8 link   vllm-kimi-k25-int4.service',
			'  4 held idle   0%  79%    75.8/96.0  40C -         vllm-kimi-k25-int4.service',
			'  5 held idle   0%  79%    75.8/96.0  41C xid 79    vllm-kimi-k25-int4.service',
			'  6 held idle   0%  79%    75.8/96.0  42C -         vllm-kimi-k25-int4.service',
			'  7 held idle   0%  79%    75.8/96.0  43C -         vllm-kimi-k25-int4.service',
			' sum 606.4/768.0 GiB  668 W  held idle 8/8  free 0/8',
		]);
	});

	it('shows a lost card with its sentence and no numbers', () => {
		const lost = {busId: '31:00', says: 'Unable to determine the device handle', advice: 'reset'};
		const model = selectGpus(
			sampleState({facts: factsOf({...sampleFacts, gpus: {cards: [gpu(0)], lost: [lost], moreAt: 0}})}),
		);
		const rows = gpuPaneRows(model, {...FRAME, width: 100});
		expect(linesOf(rows)[3]).toBe(
			`  - lost                -    -          -/-    -        -     - -         31:00: Unable to determin…`,
		);
		expect(tonesOf(rows[3])).toContain('bad:lost');
		expect(linesOf(rows).at(-1)).toContain('lost 1/2');
	});

	it('keeps unknown apart from nothing', () => {
		const silent = gpu(0, {
			memoryUsedBytes: unknown('[N/A]'),
			busyPercent: unknown('[N/A]'),
			temperatureCelsius: unknown('[N/A]'),
		});
		const free = gpu(1, {memoryUsedBytes: known(0), busyPercent: known(0)});
		const rows = linesOf(gpuPaneRows(cards(silent, free), FRAME));
		expect(rows[2]).toMatch(/^> 0 unknown {6}- {4}- {7}-\/96\.0 {4}- -/);
		expect(rows[3]).toMatch(/^ {2}1 free {8}0% {3}0% {5}0\.0\/96\.0 {2}41C -/);
	});

	it('colours by health: a busy card is good, a card that needs a reset is not', () => {
		const rows = gpuPaneRows(
			cards(
				gpu(0),
				gpu(1, {busyPercent: known(98)}),
				gpu(2, {needsReset: true}),
				gpu(3, {temperatureCelsius: known(90)}),
			),
			{...FRAME, focused: false},
		);
		expect(tonesOf(rows[3])).toContain('good:busy');
		expect(tonesOf(rows[4])).toContain('bad:needs re…');
		expect(tonesOf(rows[5])).toContain('bad:90C');
	});

	it('has words for each face', () => {
		const facts = sampleState().facts;
		const faces = (gpus: typeof facts.gpus) =>
			linesOf(gpuPaneRows(selectGpus(sampleState({facts: {...facts, gpus}})), {...FRAME, height: 2}));
		expect(faces(null)).toEqual([`━[1 GPU] ${'━'.repeat(54)} not yet heard ━`, ' not yet heard']);
		const failing = {failure: {kind: 'timeout', afterMs: 5000}, since: NOW - 12_000, at: NOW} as const;
		expect(faces({turn: 1, last: null, failing})[1]).toBe(' cannot look: no answer in 5 s');
		expect(faces({turn: 2, last: facts.gpus?.last ?? null, failing})[0]).toMatch(
			/ FAILING 12s \(shown: 0\.6s old\): no answer in 5 s ━$/,
		);
		expect(
			faces({turn: 1, last: {value: {cards: [], lost: [], moreAt: 0}, at: NOW, startedAt: NOW}, failing: null})[1],
		).toBe(' the driver answers, and there is no card');
		expect(
			faces({turn: 1, last: {value: sampleFacts.gpus, at: NOW - 60_000, startedAt: NOW}, failing: null})[0],
		).toMatch(/ STALE, age 1m00s ━$/);
	});

	it('scrolls to the selected card when there are more than fit', () => {
		const many = Array.from({length: 16}, (_, index) => gpu(index));
		const state = sampleState({
			facts: factsOf({...sampleFacts, gpus: {cards: many, lost: [], moreAt: 0}}),
			view: {selected: {...sampleState().view.selected, gpu: 'GPU-15'}},
		});
		const rows = linesOf(gpuPaneRows(selectGpus(state), {...FRAME, height: 6}));
		expect(rows).toHaveLength(6);
		expect(rows[5]).toMatch(/^>15 /);
	});
});
