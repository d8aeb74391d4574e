/** A counted resource with a queue: acts before looks, each waiting no longer than its own limit. */
export type Slots = {
	/** true when a slot was got within the limit. */
	take(limitMs: number, urgent: boolean): Promise<boolean>;
	give(): void;
};

export function makeSlots(count: number): Slots {
	let free = count;
	const waiting: ((got: boolean) => void)[] = [];
	return {
		take(limitMs, urgent) {
			if (free > 0) {
				free--;
				return Promise.resolve(true);
			}
			return new Promise(resolve => {
				const timer = setTimeout(
					() => {
						waiting.splice(waiting.indexOf(settle), 1);
						resolve(false);
					},
					Math.max(0, limitMs),
				);
				function settle(got: boolean) {
					clearTimeout(timer);
					resolve(got);
				}
				if (urgent) waiting.unshift(settle);
				else waiting.push(settle);
			});
		},
		give() {
			const next = waiting.shift();
			if (next) next(true);
			else free++;
		},
	};
}
