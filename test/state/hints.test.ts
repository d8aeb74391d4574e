import {expect, test} from 'vitest';
import {operationEntry} from '../../src/ops/operations/catalogue.ts';
import {isRefusal} from '../../src/ops/operations/operation.ts';
import {identityKey} from '../../src/ops/probes/probe.ts';
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

test('a command line is unread until it was asked of this very process, also in vain; a pid that is gone has none', () => {
	const pids = [812, 843, 9120, 4711];
	const unread = (lines: Iterable<readonly [string, string | null]>) =>
		hintsOf(
			{...sampleState(), facts: factsOf({...sampleFacts, 'command-lines': {lines: new Map(lines)}})},
			pids,
			NOW,
		).unreadLines.filter(pid => pids.includes(pid));
	const keys = sampleFacts.processes.processes.filter(({pid}) => pids.includes(pid)).map(identityKey);
	expect(keys).toHaveLength(3);
	expect(unread([])).toEqual([812, 843, 9120]);
	expect(unread(keys.map(key => [key, null]))).toEqual([]);
	expect(unread([['812@1', 'another one'], ...keys.slice(1).map(key => [key, 'x'] as const)])).toEqual([812]);
});
