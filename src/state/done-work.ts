import type {DoneWork} from '../ops/operations/undo.ts';
import type {JournalEntry} from './state.ts';

/** Operations that ended well, oldest first. */
export const doneWork = (journal: readonly JournalEntry[]): readonly DoneWork[] =>
	journal.flatMap(({at, plan, outcome}) => (plan && outcome === 'done' ? [{...plan, at}] : []));
