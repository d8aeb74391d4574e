import {seeded} from './random.ts';

/** One training sample as merged.json holds it. */
export type DatasetRecord = {readonly input_ids: readonly number[]; readonly loss_mask: readonly number[]};

export const MAX_TOKENS = 128;

/** Lengths log-normal around 40 tokens with a cap, as the real data's are around 2,350 with a cap of 8,192. */
export function makeRecords(count: number, seed: number): DatasetRecord[] {
	const random = seeded(seed ^ 0x5eed);
	return Array.from({length: count}, () => {
		const length = Math.max(4, Math.min(MAX_TOKENS, Math.round(Math.exp(3.5 + 0.6 * random.normal()))));
		const prompt = random.whole(1, length - 1);
		return {
			input_ids: Array.from({length}, () => random.whole(5, 163_840)),
			loss_mask: Array.from({length}, (_, at) => (at < prompt ? 0 : 1)),
		};
	});
}

/** Sizes of one box. Scale 1 is a tenth of the incident: 3,732 samples, 1,840 files. */
export type Dimensions = {
	readonly records: number;
	readonly groupSize: number;
	/** Files in the group that was being filled when the machine died. */
	readonly lastGroup: number;
	readonly holes: readonly number[];
	readonly truncated: readonly number[];
};

export function dimensions(scale: number): Dimensions {
	const groupSize = Math.max(8, Math.round(200 * scale));
	const lastGroup = Math.max(6, Math.round(43 * scale));
	const last = 9 * groupSize;
	return {
		records: Math.max(last + groupSize, Math.round(3732 * scale)),
		groupSize,
		lastGroup,
		holes: [2, 3, 4].map(group => group * groupSize + ((group * 7) % groupSize)),
		truncated: [5 * groupSize + 1, last + lastGroup - 3, last + lastGroup - 2, last + lastGroup - 1],
	};
}
