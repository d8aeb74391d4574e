import {expect, test} from 'vitest';
import {fuzz} from './support/fuzz.ts';

test('20,000 damaged files and pickles: each gets a verdict, soon, and no change of a whole file goes unseen', () => {
	const {runs, verdicts, unseen, slowestMs} = fuzz(20_000, 1, 'test/fixtures/pt');
	expect(runs).toBe(20_000);
	expect(unseen).toEqual([]);
	// A hang, not a slow machine.
	expect(slowestMs).toBeLessThan(20_000);
	expect(Object.keys(verdicts).sort()).toEqual([
		'file: done',
		'file: suspect',
		'file: unsupported',
		'file: unverifiable',
		'packed pickle: done',
		'packed pickle: suspect',
		'pickle: read',
		'pickle: refused',
	]);
}, 240_000);
