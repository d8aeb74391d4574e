import {expect, test} from 'vitest';
import {operationEntry} from '../../src/ops/operations/catalogue.ts';
import {isRefusal} from '../../src/ops/operations/operation.ts';
import {hintsOf} from '../../src/state/hints.ts';
import {NOW, sampleFacts, UNIT} from '../ui/support/sample-facts.ts';
import {factsOf, sampleState, sampleTarget} from '../ui/support/sample-state.ts';

test('the unit of a running operation is asked about also when it holds nothing any more', () => {
	const facts = factsOf(sampleFacts);
	const plan = operationEntry('stop-service')?.plan({target: sampleTarget, facts, nowMs: NOW}, UNIT);
	if (!plan || isRefusal(plan)) throw new Error('no plan');
	const idle = {...sampleState(), facts: factsOf({...sampleFacts, holders: {...sampleFacts.holders, holders: []}})};
	expect(hintsOf(idle, [], NOW).units).not.toContain(UNIT);
	const running = {phase: 'running' as const, plan, steps: [], output: [], startedAt: NOW};
	expect(hintsOf({...idle, operation: running}, [], NOW).units).toContain(UNIT);
});
