import {setTimeout as sleep} from 'node:timers/promises';
import {expect, test} from 'vitest';
import {Underway} from '../../../src/ops/extract/underway.ts';

test('so many hold a place at once, and one that lets go early makes room while it goes on', async () => {
	const underway = new Underway(2, () => {});
	const held: (() => void)[] = [];
	const ends: (() => void)[] = [];
	let begun = 0;
	const add = () =>
		underway.add(letGo => {
			begun++;
			held.push(letGo);
			return new Promise(resolve => ends.push(resolve));
		});
	const added = Promise.all([add(), add(), add()]);
	await sleep(5);
	expect(begun).toBe(2);
	held[0]?.();
	await added;
	expect(begun).toBe(3);
	let ended = false;
	const all = underway.ended().then(() => {
		ended = true;
	});
	for (const end of ends.slice(1)) end();
	await sleep(5);
	expect(ended).toBe(false);
	ends[0]?.();
	await all;
});

test('the first failure is told at once, and again at the end; what else is under way comes to its end before', async () => {
	let told = 0;
	const underway = new Underway(3, () => told++);
	let done = false;
	const slow = async () => {
		await sleep(20);
		done = true;
	};
	await underway.add(slow);
	await underway.add(() => Promise.reject(new Error('first')));
	await underway.add(() => Promise.reject(new Error('second')));
	await sleep(5);
	expect([told, done]).toEqual([2, false]);
	await expect(underway.ended()).rejects.toThrow('first');
	expect(done).toBe(true);
});
