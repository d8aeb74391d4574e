import {expect, test} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import {isRefusal, type Situation} from '../../../src/ops/operations/operation.ts';
import {extractorPlan} from '../../../src/ops/operations/run-extractor.ts';
import {RECOVER} from '../../../src/ops/runbook/recover.ts';
import {NOW, sampleFacts} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

type Extraction = FactValues['extraction'];
const inventory = sampleFacts.extraction.inventory as NonNullable<Extraction['inventory']>;
const run = sampleFacts.extraction.run as NonNullable<Extraction['run']>;
const ended = {...run, state: 'finished' as const, alive: false, updatedAt: NOW, message: null};

const seen = (change: Partial<NonNullable<Extraction['inventory']>>, listedAt = NOW + 1_000): Situation => ({
	target: sampleTarget,
	facts: factsOf({
		...sampleFacts,
		extraction: {
			...sampleFacts.extraction,
			run: ended,
			listedAt: String(listedAt / 1_000),
			inventory: {...inventory, suspects: [], groups: [], newestAt: NOW - 9_000, ...change},
		},
	}),
	nowMs: NOW,
});
const plan = extractorPlan(seen({expected: 100, present: 90, complete: 90}));
if (isRefusal(plan)) throw new Error(plan.refused);
const asked = (id: string, situation: Situation) => {
	const step = plan.steps.find(each => each.id === id);
	if (step?.kind !== 'wait') throw new Error(`no wait ${id}`);
	return step.until(situation, NOW);
};

test.each(['new-file', 'motion'])('%s waits while the last files of a finished run are not read yet', id => {
	expect(asked(id, seen({expected: 100, present: 100, complete: 93})).state).toBe('pending');
	expect(asked(id, seen({expected: 100, present: 95, complete: 95}, NOW - 1_000)).state).toBe('pending');
});

test.each(['new-file', 'motion'])('%s fails when a finished run leaves samples out', id => {
	expect(asked(id, seen({expected: 100, present: 95, complete: 95}))).toMatchObject({
		state: 'failed',
		words: 'the extractor ended (finished): see its log',
	});
});

test('a run that has finished with everything need not be watched any longer', () => {
	expect(asked('motion', seen({expected: 100, present: 100, complete: 100}))).toEqual({
		state: 'met',
		words: '0 new files, all 100 are there: it has finished',
	});
});

test('a run that finds nothing left to do is no failure: its files of before are all there', () => {
	expect(asked('new-file', seen({expected: 100, present: 100, complete: 100}))).toEqual({
		state: 'met',
		words: 'it has finished: all 100 are there and whole',
	});
});

test('no second run is begun while the last files of one that has finished are not seen', () => {
	const check = RECOVER.find(({id}) => id === 'extraction');
	const holds = (situation: Situation) => check?.holds(situation);
	const unread = {expected: 100, present: 100, complete: 93};
	expect(holds(seen(unread))).toEqual({
		state: 'failed',
		words: '93/100 whole, 7 not read yet: the run has finished, its last files are not seen yet',
	});
	expect(holds(seen({expected: 100, present: 95, complete: 95}, NOW - 1_000))?.state).toBe('failed');
	// Listed after its end, and samples are missing: there is something to do.
	expect(holds(seen({expected: 100, present: 95, complete: 90}))?.words).not.toContain('not seen yet');
	expect(holds(seen({expected: 100, present: 100, complete: 100}))?.state).toBe('met');
});
