import {type Lock, lookScript, readLock} from '../act-lock.ts';
import {ParseError} from '../outcome.ts';
import type {Probe} from './probe.ts';

/** Who acts on this host now; null: nobody. */
export type ActingFacts = {readonly held: Extract<Lock, {kind: 'held'}> | null};

export const acting: Probe<ActingFacts> = {
	id: 'acting',
	lane: 'files',
	everyMs: 10_000,
	limitMs: 8_000,
	capBytes: 16_384,
	script: lookScript,
	parse({stdout}) {
		const lock = readLock(stdout);
		if (!lock) throw new ParseError('action lock', stdout.trim());
		return {held: lock.kind === 'held' ? lock : null};
	},
};
