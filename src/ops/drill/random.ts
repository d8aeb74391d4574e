/** A small deterministic generator (mulberry32): same seed, same box. Not for secrets. */
export type Random = {
	/** In [0, 1). */
	next(): number;
	/** Whole number from `from` up to and without `to`. */
	whole(from: number, to: number): number;
	/** Mean 0, deviation 1. */
	normal(): number;
};

export function seeded(seed: number): Random {
	let state = seed >>> 0;
	const next = (): number => {
		state = (state + 0x6d2b79f5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
	return {
		next,
		whole: (from, to) => from + Math.floor(next() * (to - from)),
		normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
	};
}
