import {expect, test} from 'vitest';
import type {Plan, RunEvent} from '../../src/ops/operations/operation.ts';
import {advance, started} from '../../src/state/operation-progress.ts';
import type {OperationState} from '../../src/state/state.ts';

const plan = (change: Partial<Plan> = {}): Plan => ({
	operation: 'recover',
	title: 'recover ct129: 2 operation(s)',
	tier: 3,
	confirmWord: 'ct129',
	targets: [],
	excluded: [],
	steps: [
		{kind: 'wait', id: 'services', says: '', looks: [], limitMs: 1, until: () => ({state: 'met', words: ''})},
		{kind: 'wait', id: 'cards', says: '', looks: [], limitMs: 1, until: () => ({state: 'met', words: ''})},
	],
	warnings: [],
	inverse: null,
	...change,
});
const next = plan({operation: 'free-gpus', title: 'free 4 cards'});
const after = (...events: readonly RunEvent[]): OperationState => events.reduce(advance, started(plan(), 1_000));

test('a hold is kept with the plan that was shown and the check it mends, until it is let go', () => {
	const held = after({type: 'held', index: 1, next, at: 2_000});
	expect(held).toMatchObject({phase: 'running', held: {next, check: 'cards', since: 2_000}});
	expect(advance(held, {type: 'let-go', index: 1, at: 3_000})).not.toHaveProperty('held');
});

test('what happens while it is held leaves the hold as it is: it is known by identity', () => {
	const held = after({type: 'held', index: 1, next, at: 2_000});
	const more = advance(held, {type: 'output', index: 1, text: 'a\nb', at: 2_500});
	expect(more).toMatchObject({output: ['a', 'b']});
	expect(more.phase === 'running' && held.phase === 'running' && more.held === held.held).toBe(true);
});

test('the end of the operation ends the hold', () => {
	const ended = after(
		{type: 'held', index: 1, next, at: 2_000},
		{type: 'ended', outcome: 'cancelled', words: 'stopped', at: 3_000},
	);
	expect(ended).toEqual({
		phase: 'idle',
		last: {operation: 'recover', outcome: 'cancelled', words: 'stopped', at: 3_000},
	});
});

test('a step keeps when it began, and has an end once it is neither to come nor running', () => {
	const running = after(
		{type: 'step', index: 0, state: 'running', words: 'a', at: 2_000},
		{type: 'step', index: 0, state: 'running', words: 'b', at: 3_000},
	);
	expect(running).toMatchObject({
		steps: [{state: 'running', words: 'b', startedAt: 2_000, endedAt: null}, {state: 'pending'}],
	});
	expect(advance(running, {type: 'step', index: 0, state: 'skipped', words: 'c', at: 4_000})).toMatchObject({
		steps: [{state: 'skipped', startedAt: 2_000, endedAt: 4_000}, {}],
	});
});
