import {commandsOf, type Plan} from '../operations/operation.ts';

/** What a person says before the next operation of a recovery: this one, this one and all the rest, or none of them. */
export type Choice = 'next' | 'rest' | 'stop';

/** Stands still until somebody has chosen. */
export type Hold = (next: Plan) => Promise<Choice>;

/** Whether an operation may begin or has to be shown first. The one before it was: in the confirmation, or in a hold. */
export type Pace = {
	mayBegin(next: Plan): boolean;
	ask(next: Plan): Promise<Choice>;
	began(): void;
};

/** Without a `hold` everything may begin: the confirmation was for all of it. */
export function createPace(hold: Hold | null): Pace {
	let asks = false;
	let agreed: string | null = null;
	return {
		mayBegin: next => !asks || agreed === commandsOf(next),
		async ask(next) {
			const choice = hold ? await hold(next) : 'rest';
			if (choice === 'rest') hold = null;
			asks = hold !== null;
			agreed = commandsOf(next);
			return choice;
		},
		began() {
			asks = hold !== null;
			agreed = null;
		},
	};
}
