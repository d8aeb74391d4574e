import {expect, test} from 'vitest';
import {makeSlots} from '../../../src/ops/transports/slots.ts';

test('acts go before looks, and nobody waits longer than its own limit', async () => {
	const slots = makeSlots(1);
	expect(await slots.take(10, false)).toBe(true);
	const order: string[] = [];
	const look = slots.take(5_000, false).then(got => got && order.push('look'));
	const act = slots.take(5_000, true).then(got => got && order.push('act'));
	expect(await slots.take(20, false)).toBe(false);
	slots.give();
	await act;
	slots.give();
	await look;
	expect(order).toEqual(['act', 'look']);
});

test('a slot given back with nobody waiting is there for the next', async () => {
	const slots = makeSlots(1);
	await slots.take(10, false);
	slots.give();
	expect(await slots.take(10, false)).toBe(true);
	expect(await slots.take(10, true)).toBe(false);
});
