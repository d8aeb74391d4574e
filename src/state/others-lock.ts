import {isStale, type Lock} from '../ops/act-lock.ts';
import {fresh} from '../ops/facts.ts';
import type {ConsoleState} from './state.ts';

/** The lock of another operator who acts on this host; null: nobody, or this very console. */
export function othersLock({
	facts,
	session,
}: Pick<ConsoleState, 'facts' | 'session'>): Extract<Lock, {kind: 'held'}> | null {
	const held = fresh(facts.acting)?.held ?? null;
	return held?.actor?.token === session.token ? null : held;
}

/** Whose console is gone, or one's own of before: a person may break it, and nothing else does. */
export const mayBreak = (held: Extract<Lock, {kind: 'held'}>, {operator, from}: ConsoleState['session']): boolean =>
	isStale(held) || (held.actor?.operator === operator && held.actor.from === from);
