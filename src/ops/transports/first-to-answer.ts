import type {Failure, Outcome} from '../outcome.ts';

export type Search = {
	/** How many there are, best first. */
	readonly count: number;
	/** How long one is waited for before the next is tried beside it. */
	readonly headStartMs: number;
	knock(index: number): Promise<Outcome<unknown>>;
	/** Nobody is tried any more. */
	over(): boolean;
	failed(index: number, failure: Failure): void;
};

/**
 * All in order, each started a little after the one before it, or at once when that has failed: a dead first one costs its
 * head start and not its whole limit. The first that answers; null when none does, or it is over before.
 */
export function firstToAnswer({count, headStartMs, knock, over, failed}: Search): Promise<number | null> {
	return new Promise(resolve => {
		let begun = 0;
		let failures = 0;
		let found = false;
		let timer: NodeJS.Timeout | undefined;
		async function attempt(index: number) {
			const outcome = await knock(index);
			if (over()) return resolve(null);
			if (outcome.ok) {
				found = true;
				clearTimeout(timer);
				return resolve(index);
			}
			failed(index, outcome.failure);
			if (found) return;
			if (++failures < count) return next();
			resolve(null);
		}
		function next() {
			clearTimeout(timer);
			if (begun >= count || found || over()) return;
			void attempt(begun++);
			timer = setTimeout(next, headStartMs);
		}
		next();
	});
}
