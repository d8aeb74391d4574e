/** Work that goes on behind its owner's back: at most `most` at once, and the first failure is kept. */
export class Underway {
	private readonly going = new Set<Promise<void>>();
	private readonly holding = new Set<Promise<void>>();
	private failure: {readonly error: unknown} | null = null;

	constructor(
		private readonly most: number,
		/** Told at once, so that nothing new is begun. */
		private readonly failed: () => void,
	) {}

	/** Begins it as soon as fewer than `most` hold a place, and does not wait for its end. It may let go of its place before. */
	async add(work: (letGo: () => void) => Promise<void>): Promise<void> {
		while (this.holding.size >= this.most) await Promise.race(this.holding);
		let letGo = (): void => {};
		const held: Promise<void> = new Promise<void>(resolve => {
			letGo = resolve;
		}).finally(() => this.holding.delete(held));
		this.holding.add(held);
		const one: Promise<void> = work(letGo)
			.catch(error => {
				this.failure ??= {error};
				this.failed();
			})
			.finally(() => {
				letGo();
				this.going.delete(one);
			});
		this.going.add(one);
	}

	/** Resolves when nothing is under way; rejects with the first failure. */
	async ended(): Promise<void> {
		await Promise.all(this.going);
		if (this.failure) throw this.failure.error;
	}
}
