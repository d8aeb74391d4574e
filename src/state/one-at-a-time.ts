/** Asked for again while it is under way, it is still the same work: everybody waits for the one that goes on. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
	let going: Promise<void> | null = null;
	return () => {
		going ??= work().finally(() => {
			going = null;
		});
		return going;
	};
}
