import {expect, test} from 'vitest';
import {mayBreak, othersLock} from '../../src/state/others-lock.ts';
import {sampleFacts} from '../ui/support/sample-facts.ts';
import {factsOf, sampleState} from '../ui/support/sample-state.ts';

const held = (change: object = {}, ageMs = 5_000) => ({
	kind: 'held' as const,
	actor: {token: 'x', operator: 'alice', from: 'desk', operation: 'recover', since: 1, ...change},
	ageMs,
	otherBoot: false,
});
const seeing = (lock: ReturnType<typeof held>) => sampleState({facts: factsOf({...sampleFacts, acting: {held: lock}})});

test('the own lock is nobody else, a fresh one of somebody else may not be broken, an old one and the own of before may', () => {
	const {session} = sampleState();
	expect(othersLock(seeing(held({token: session.token})))).toBeNull();
	expect(othersLock(seeing(held()))).toEqual(held());
	expect(mayBreak(held(), session)).toBe(false);
	expect(mayBreak(held({}, 121_000), session)).toBe(true);
	expect(mayBreak(held({operator: session.operator, from: session.from}), session)).toBe(true);
	expect(mayBreak(held({operator: session.operator}), session)).toBe(false);
});
