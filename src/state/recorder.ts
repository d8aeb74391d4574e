import type {Journal} from './journal.ts';
import type {JournalEntry} from './state.ts';
import type {ConsoleStore} from './store.ts';

export type NewEntry = Omit<JournalEntry, 'at'>;

/** What happens, on the screen at once and in the journal. */
export type Recorder = {
	note(entry: NewEntry): void;
	/** On the disk before it resolves; rejects when it cannot be: then nothing may be done. */
	keep(entry: NewEntry): Promise<void>;
};

const SHOWN = 500;

export function createRecorder(store: ConsoleStore, journal: Journal, clock: () => number): Recorder {
	function shown(entry: NewEntry): JournalEntry {
		const whole = {...entry, at: clock()};
		store.setState(state => ({journal: [...state.journal, whole].slice(-SHOWN)}));
		return whole;
	}
	return {
		note: entry => journal.note(shown(entry)),
		keep: entry => journal.write(shown(entry)),
	};
}
