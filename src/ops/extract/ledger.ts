/** Where one sample stands. Only `done` needs nothing more; `filtered` is left out for good and keeps its index. */
export type Standing =
	| {readonly state: 'absent' | 'in-flight' | 'done' | 'filtered'}
	| {readonly state: 'suspect' | 'quarantined'; readonly reason: string}
	| {readonly state: 'failed'; readonly times: number; readonly reason: string};

const ABSENT: Standing = {state: 'absent'};

/** Every index of the dataset and where it stands. Holes are absent ones, wherever they are. */
export class Ledger {
	private readonly standings: Standing[] = [];
	private readonly sums = new Map<Standing['state'], number>();

	get(index: number): Standing {
		return this.standings[index] ?? ABSENT;
	}

	set(index: number, standing: Standing): void {
		const before = this.standings[index];
		if (before) this.sums.set(before.state, this.count(before.state) - 1);
		this.standings[index] = standing;
		this.sums.set(standing.state, this.count(standing.state) + 1);
	}

	count(state: Standing['state']): number {
		return this.sums.get(state) ?? 0;
	}

	/** Ascending. */
	having(state: Standing['state']): number[] {
		const found: number[] = [];
		for (const [index, standing] of this.standings.entries()) if (standing.state === state) found.push(index);
		return found;
	}

	/** What is to be extracted: holes and suspects in order, then what failed before, so that it holds nobody up. */
	toDo(): {fresh: number[]; failed: number[]} {
		const fresh: number[] = [];
		const failed: number[] = [];
		for (const [index, {state}] of this.standings.entries()) {
			if (state === 'failed') failed.push(index);
			else if (state !== 'done' && state !== 'filtered') fresh.push(index);
		}
		return {fresh, failed};
	}

	/** `3 absent, 40 done`, without the states that nobody is in. */
	words(): string {
		return [...this.sums]
			.filter(([, count]) => count > 0)
			.map(([state, count]) => `${count} ${state}`)
			.join(', ');
	}
}
