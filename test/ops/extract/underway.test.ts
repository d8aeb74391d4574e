import {setTimeout as sleep} from 'node:timers/promises';
import {expect, test} from 'vitest';
import {Underway} from '../../../src/ops/extract/underway.ts';

test('so many hold a place at once, and one that lets go early makes room while it goes on', async () => {
	const underway = new Underway({count: 2, bytes: 100}, () => {});
	const held: (() => void)[] = [];
	const ends: (() => void)[] = [];
	let begun = 0;
	const add = () =>
		underway.add(1, letGo => {
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
	const underway = new Underway({count: 3, bytes: 100}, () => told++);
	let done = false;
	const slow = async () => {
		await sleep(20);
		done = true;
	};
	await underway.add(1, slow);
	await underway.add(1, () => Promise.reject(new Error('first')));
	await underway.add(1, () => Promise.reject(new Error('second')));
	await sleep(5);
	expect([told, done]).toEqual([2, false]);
	await expect(underway.ended()).rejects.toThrow('first');
	expect(done).toBe(true);
});

test('bytes are bounded as well as the count; what is larger than all of the room goes alone', async () => {
	const underway = new Underway({count: 9, bytes: 100}, () => {});
	const begun: number[] = [];
	const held: (() => void)[] = [];
	const add = (bytes: number) =>
		underway.add(bytes, async letGo => {
			begun.push(bytes);
			await new Promise<void>(resolve => held.push(resolve));
			letGo();
		});
	const added = [add(60), add(30), add(20), add(400), add(1)];
	const next = async () => {
		held.shift()?.();
		await sleep(5);
		return [...begun];
	};
	await sleep(5);
	// A short queue jump is no harm: what fits is not held up by what does not.
	expect(begun).toEqual([60, 30, 1]);
	expect(await next()).toEqual([60, 30, 1, 20]);
	await next();
	await next();
	expect(await next()).toEqual([60, 30, 1, 20, 400]);
	await next();
	await Promise.all(added);
	await underway.ended();
});
