import type {OperationId, Situation} from '../operations/operation.ts';

/**
 * One thing that must hold before a long run begins. `finds` is pure. A fail blocks what it is in the way of, and so does
 * not knowing; a person may override either by its name, and that is written down.
 */
export type PreflightCheck = {
	readonly id: string;
	readonly says: string;
	readonly blocks: 'launch' | 'extraction';
	/** What puts it right, where an operation can. */
	readonly mends: OperationId | null;
	/** Several findings where several things are wrong; none: it holds. null: nothing to check on this host. */
	finds(situation: Situation): readonly Finding[] | null;
	/** What will be left of it once `mends` has done its work; where it is not set, nothing will. */
	remains?(situation: Situation): readonly Finding[];
};

/** A `note` is evidence that all is well. `aside`: not known, and nothing rests on it here, so nothing waits for it. */
export type Finding = {
	readonly level: 'note' | 'warn' | 'fail' | 'unknown';
	readonly words: string;
	readonly aside?: boolean;
};

export const note = (words: string): Finding => ({level: 'note', words});
export const fail = (words: string): Finding => ({level: 'fail', words});
export const warn = (words: string): Finding => ({level: 'warn', words});
export const unseen = (words: string): readonly Finding[] => [{level: 'unknown', words}];
export const unseenAside = (words: string): readonly Finding[] => [{level: 'unknown', words, aside: true}];
/** Whether it is in the way of what the check blocks. */
export const stops = ({level, aside}: Finding): boolean => level === 'fail' || (level === 'unknown' && !aside);
export const failWhen = (wrong: boolean, words: string): readonly Finding[] => (wrong ? [fail(words)] : []);
