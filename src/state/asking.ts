import {type Asker, promptsOf, type Question, topicOf} from '../ops/transports/question.ts';
import type {AskOverlay, JournalEntry} from './state.ts';
import type {ConsoleStore} from './store.ts';
import {push} from './view.ts';

/**
 * Questions of the routes, one dialog at a time, and only when nothing else has the keyboard: what was being typed was meant
 * for something else. What is typed stays in here; the state knows whether there is something, and shows it only where the
 * one who asks allows that. A dialog that goes in any other way than an answer is a skipped question.
 */
export type Asking = Asker & {
	type(text: string): void;
	erase(): void;
	accept(): void;
};

type Waiting = {
	readonly question: Question;
	readonly withdrawn: AbortSignal | undefined;
	resolve(answers: readonly string[] | null): void;
};

export type AskingOptions = {
	readonly store: ConsoleStore;
	readonly clock: () => number;
	note(entry: Omit<JournalEntry, 'at'>): void;
	hint(words: string): void;
};

export function createAsking({store, clock, note, hint}: AskingOptions): Asking {
	const queue: Waiting[] = [];
	let current: Waiting | null = null;
	let typed = '';
	let answers: string[] = [];

	const isAsk = (overlay: {readonly type: string}): overlay is AskOverlay => overlay.type === 'ask';

	function showNext() {
		while (queue[0]?.withdrawn?.aborted) queue.shift()?.resolve(null);
		const {view} = store.getState();
		const next = queue[0];
		if (current || !next || view.overlays.length > 0) return;
		queue.shift();
		current = next;
		typed = '';
		answers = [];
		const overlay: AskOverlay = {
			type: 'ask',
			question: next.question,
			at: 0,
			shown: '',
			filled: false,
			openedAt: clock(),
			complaint: 'again' in next.question && next.question.again ? 'that was not it' : null,
		};
		store.setState({view: push(view, overlay)});
	}

	function end(given: readonly string[] | null) {
		const ended = current;
		if (!ended) return;
		current = null;
		typed = '';
		answers = [];
		store.setState(({view}) => ({view: {...view, overlays: view.overlays.filter(each => !isAsk(each))}}));
		note({kind: 'session', level: 'info', words: outcomeOf(ended.question, given), command: null});
		ended.resolve(given);
		showNext();
	}

	function change(next: Partial<AskOverlay>) {
		store.setState(({view}) => ({
			view: {...view, overlays: view.overlays.map(each => (isAsk(each) ? {...each, ...next} : each))},
		}));
	}

	function write(text: string) {
		typed = text;
		const echo = current && promptsOf(current.question)[answers.length]?.echo;
		change({shown: echo ? typed : '', filled: typed !== '', complaint: null});
	}

	store.subscribe(({view}) => {
		if (current && !view.overlays.some(isAsk)) end(null);
		else showNext();
	});

	return {
		decidesHostKeys: true,
		ask: (question, withdrawn) =>
			new Promise(resolve => {
				const waiting = {question, withdrawn, resolve};
				withdrawn?.addEventListener('abort', () => {
					if (current === waiting) {
						end(null);
						hint('the other end no longer waits for an answer');
					} else if (queue.includes(waiting)) {
						queue.splice(queue.indexOf(waiting), 1);
						resolve(null);
					}
				});
				queue.push(waiting);
				showNext();
			}),
		type: text => write(typed + text),
		erase: () => write([...typed].slice(0, -1).join('')),
		accept() {
			if (!current) return;
			const {kind} = current.question;
			if (kind === 'host-key' && typed !== 'yes') return change({complaint: 'type yes to keep the key; Esc does not'});
			if (kind === 'passphrase' && typed === '') return change({complaint: 'nothing is typed; Esc skips this key'});
			answers.push(typed);
			if (answers.length === promptsOf(current.question).length) return end(answers);
			change({at: answers.length});
			write('');
		},
	};
}

/** For the journal: what was decided, never what was typed. */
function outcomeOf(question: Question, given: readonly string[] | null): string {
	const topic = topicOf(question);
	if (question.kind === 'host-key')
		return given ? `${topic} accepted, to be kept in ${question.file}` : `${topic} not accepted`;
	return `${topic}: ${given ? 'given' : 'skipped'}`;
}
