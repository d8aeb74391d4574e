/**
 * Token lists for a request whose answer is known beforehand to be a fair test: fixed, so that two launches can be compared;
 * in two lengths, since fused all-reduces spoil short prefills alone and chunks cut long ones alone. The ids are words of
 * any vocabulary above 30,000 and none of its special tokens. `canary.py` makes the same lists by the same rule.
 */
export type CanaryLength = 'short' | 'long';

const LISTS: Readonly<Record<CanaryLength, {readonly seed: number; readonly tokens: number}>> = {
	short: {seed: 1, tokens: 200},
	long: {seed: 2, tokens: 4_000},
};

/** SHA-256 of the whole lists as little-endian int64, as the hook writes it into meta.json. */
export const CANARY_SHA256: Readonly<Record<CanaryLength, string>> = {
	short: '0d07a73c356308d3cd651d63aed9e2bcb5b8036ac596adf93d8e94a368a7625f',
	long: 'f22c512465d1cabd839c626fda11619c0e10879c9f3b5e7c6f29d548873d0385',
};

/** Token counts under a cap: the long one is cut, and the short one stays well below it. */
export function canaryTokens(maxTokens: number): Readonly<Record<CanaryLength, number>> {
	const long = Math.max(1, Math.min(LISTS.long.tokens, maxTokens));
	return {short: Math.min(LISTS.short.tokens, Math.ceil(long / 4)), long};
}

/** The first `tokens` ids of a list: a linear congruential generator modulo 2^31, its upper bits into 1,000 … 28,999. */
export function canaryIds(which: CanaryLength, tokens = LISTS[which].tokens): number[] {
	let state = LISTS[which].seed;
	return Array.from({length: tokens}, () => {
		state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
		return 1_000 + ((state >> 8) % 28_000);
	});
}
