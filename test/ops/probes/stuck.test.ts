import {describe, expect, it} from 'vitest';
import {heldBack, isFrozen, stuckSince, waitsForStorage} from '../../../src/ops/probes/stuck.ts';
import {process} from '../../ui/support/sample-facts.ts';

const task = (pid: number, state: string, waitChannel: string | null, killPending = false) =>
	process(pid, {state, waitChannel, killPending});

describe('a task in D', () => {
	it.each([
		['D', '__refrigerator', true, false],
		['D', 'refrigerator', true, false],
		// From Linux 6.1 on a sleeper is frozen where it sleeps.
		['D', 'hrtimer_nanosleep', true, false],
		['D', 'futex_wait_queue', true, false],
		['D', 'do_sys_poll', true, false],
		['D', 'poll_schedule_timeout.constprop.0', true, false],
		['D', 'rpc_wait_bit_killable', false, true],
		['S', 'hrtimer_nanosleep', false, false],
		['D', 'folio_wait_bit_common', false, true],
		['D', null, false, true],
		// A v2 group freezes in S: it hears what ends it.
		['S', 'do_freezer_trap', false, false],
		['S', '__refrigerator', false, false],
		['S', 'request_wait_answer', false, true],
	])('%s at %s: frozen %s, waits for storage %s', (state, waitChannel, frozen, storage) => {
		const one = task(9, state, waitChannel);
		expect([isFrozen(one), waitsForStorage(one)]).toEqual([frozen, storage]);
	});

	it('stands still since it was first seen so, frozen or waiting', () => {
		const one = task(9, 'D', '__refrigerator');
		expect(stuckSince(null, one, 5)).toBe(5);
		expect(stuckSince({...one, waitChannel: null, stuckSince: 5}, one, 9)).toBe(5);
	});

	it('is held back by its I/O once SIGKILL is pending, by its group in any case', () => {
		expect(heldBack([task(1, 'S', null), task(2, 'D', 'rpc_wait_bit_killable')])).toBeNull();
		expect(heldBack([task(2, 'D', 'io_schedule', true), task(3, 'D', null, true)])).toBe(
			'pid 2, 3 cannot die until its I/O returns',
		);
		expect(heldBack([task(4, 'D', '__refrigerator', true), task(2, 'D', 'io_schedule', true)])).toBe(
			'pid 2 cannot die until its I/O returns; pid 4 is frozen by its control group: thaw that first',
		);
	});
});
