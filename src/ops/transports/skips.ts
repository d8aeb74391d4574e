/**
 * What the operator skipped, by topic, with the words for it: not asked again by itself. `again` lets each be asked once more
 * while `work` goes on; what nobody wanted meanwhile stays skipped, so that no dialog of it comes up hours later.
 */
export type Skips = {
	add(topic: string, why: string): void;
	/** null: may be asked. */
	why(topic: string): string | null;
	again(work: () => Promise<void>): Promise<void>;
};

export function createSkips(): Skips {
	const skipped = new Map<string, string>();
	const lifted = new Set<string>();
	return {
		add: (topic, why) => void skipped.set(topic, why),
		why(topic) {
			if (lifted.delete(topic)) skipped.delete(topic);
			return skipped.get(topic) ?? null;
		},
		async again(work) {
			for (const topic of skipped.keys()) lifted.add(topic);
			try {
				await work();
			} finally {
				lifted.clear();
			}
		},
	};
}
