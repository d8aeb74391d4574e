import {expect, test} from 'vitest';
import {fresh, type Reading, record} from '../../src/ops/facts.ts';
import {bad, good} from '../../src/ops/outcome.ts';

const when = (turn: number, at: number) => ({turn, startedAt: at - 10, at});
const SILENT = bad({kind: 'timeout', afterMs: 2_000});

test('a failed look keeps the last good value with its own time, and is not fresh', () => {
	const first = record<string>(null, good('up'), when(1, 100));
	const second = record(first, SILENT, when(2, 200));
	const third = record(second, SILENT, when(3, 300));
	expect(third).toEqual({
		turn: 3,
		last: {value: 'up', at: 100, startedAt: 90},
		failing: {failure: {kind: 'timeout', afterMs: 2_000}, since: 200, at: 300},
	});
	expect(fresh(third)).toBeNull();
	expect(fresh(first)).toBe('up');
});

test('a late answer never overwrites a newer one', () => {
	const newer = record<string>(null, good('new'), when(5, 500));
	expect(record(newer, good('old'), when(4, 600))).toBe(newer);
});

test('the next good look ends the failure', () => {
	const failing: Reading<string> = record<string>(null, SILENT, when(1, 100));
	expect(failing.last).toBeNull();
	expect(record(failing, good('back'), when(2, 200)).failing).toBeNull();
});
