import type {Choice, Hold} from '../ops/runbook/pace.ts';
import type {Held, JournalEntry} from './state.ts';
import type {ConsoleStore} from './store.ts';
import {push} from './view.ts';

/** Where a recovery that goes step by step waits for a person. The journal keeps that it waited, and for what it was let go. */
export type Holding = {
	/** An abort is a stop: nothing of what was shown has begun. */
	hold(signal: AbortSignal): Hold;
	choose(choice: Choice): void;
};

const CHOICES: Record<Choice, string> = {next: 'goes on with', rest: 'goes on to the end with', stop: 'stopped before'};

export function createHolding(
	note: (entry: Omit<JournalEntry, 'at'>) => void,
	keep: (entry: Omit<JournalEntry, 'at'>) => Promise<void>,
): Holding {
	let waiting: ((choice: Choice) => void) | null = null;
	return {
		hold: signal => async next => {
			note({kind: 'step', level: 'info', words: `step by step: waits before: ${next.title}`, command: null});
			const choice = await new Promise<Choice>(resolve => {
				waiting = resolve;
				if (signal.aborted) resolve('stop');
				signal.addEventListener('abort', () => resolve('stop'), {once: true});
			});
			waiting = null;
			await keep({
				kind: 'intent',
				level: 'info',
				words: `step by step: ${CHOICES[choice]}: ${next.title}`,
				command: null,
			});
			return choice;
		},
		choose: choice => waiting?.(choice),
	};
}

/**
 * Brings each hold to the screen once, when nothing else has the keyboard, and takes it away with its end. Closed before
 * that it is laid aside: the recovery goes on waiting, and a key brings it back.
 */
export function showHolds(store: ConsoleStore, clock: () => number): void {
	let brought: Held | null = null;
	store.subscribe(() => {
		const {operation, view} = store.getState();
		const held = (operation.phase === 'running' && operation.held) || null;
		const overlays = held ? view.overlays : view.overlays.filter(each => each.type !== 'held');
		if (overlays.length < view.overlays.length) store.setState({view: {...view, overlays}});
		else if (held && held !== brought && overlays.length === 0) {
			brought = held;
			store.setState({view: push(view, {type: 'held', openedAt: clock(), scroll: 0})});
		}
	});
}
