import type {Asker, Question} from '../../src/ops/transports/question.ts';

/** An operator who answers by list, and keeps what was asked. Asked more than that: the question stays open. */
export function answering(...answers: readonly (readonly string[] | null)[]): Asker & {
	readonly asked: Question[];
	readonly withdrawn: Question[];
	answer(answers: readonly string[] | null): void;
} {
	const left = [...answers];
	const asked: Question[] = [];
	const withdrawn: Question[] = [];
	let open: ((answers: readonly string[] | null) => void) | null = null;
	return {
		asked,
		withdrawn,
		decidesHostKeys: true,
		answer: given => open?.(given),
		ask(question, signal) {
			asked.push(question);
			const next = left.shift();
			if (next !== undefined) return Promise.resolve(next);
			return new Promise(resolve => {
				open = resolve;
				signal?.addEventListener('abort', () => {
					withdrawn.push(question);
					resolve(null);
				});
			});
		},
	};
}
