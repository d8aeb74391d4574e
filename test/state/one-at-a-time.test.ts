import {expect, test} from 'vitest';
import {oneAtATime} from '../../src/state/one-at-a-time.ts';

test('what is asked for again while it is under way is done once, and anew when it has ended', async () => {
	let begun = 0;
	const ends: (() => void)[] = [];
	const again = oneAtATime(() => {
		begun++;
		return new Promise(resolve => ends.push(resolve));
	});
	const asked = [again(), again(), again()];
	expect(begun).toBe(1);
	ends[0]?.();
	await Promise.all(asked);
	const later = again();
	expect(begun).toBe(2);
	ends[1]?.();
	await later;
});

test('one that fails does not keep the next from being tried', async () => {
	let turn = 0;
	const again = oneAtATime(async () => {
		if (turn++ === 0) throw new Error('no route');
	});
	await expect(again()).rejects.toThrow('no route');
	await again();
	expect(turn).toBe(2);
});
