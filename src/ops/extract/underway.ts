export type Limits = {readonly count: number; readonly bytes: number};

/** Work that goes on behind its owner's back: within `most` at once, and the first failure is kept. */
export class Underway {
	private readonly going = new Set<Promise<void>>();
	private readonly holding = new Set<Promise<void>>();
	private held = 0;
	private failure: {readonly error: unknown} | null = null;

	constructor(
		private readonly most: Limits,
		/** Told at once, so that nothing new is begun. */
		private readonly failed: () => void,
	) {}

	/**
	 * Begins it as soon as there is a place for it and its bytes, and does not wait for its end. It may let go of its place
	 * before. One of more bytes than there may be goes alone.
	 */
	async add(bytes: number, work: (letGo: () => void) => Promise<void>): Promise<void> {
		while (!this.hasRoom(bytes)) await Promise.race(this.holding);
		let letGo = (): void => {};
		this.held += bytes;
		const held: Promise<void> = new Promise<void>(resolve => {
			letGo = resolve;
		}).finally(() => {
			this.held -= bytes;
			this.holding.delete(held);
		});
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

	private hasRoom(bytes: number): boolean {
		if (this.holding.size === 0) return true;
		return this.holding.size < this.most.count && this.held + bytes <= this.most.bytes;
	}

	/** Resolves when nothing is under way; rejects with the first failure. */
	async ended(): Promise<void> {
		await Promise.all(this.going);
		if (this.failure) throw this.failure.error;
	}
}
