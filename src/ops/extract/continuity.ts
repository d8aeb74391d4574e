import {DamagedFile} from '../tensor/damage.ts';
import {type FinalNorm, type Side, spread} from './final-norm.ts';
import {samplePath} from './inventory.ts';
import {type Extraction, layoutOf} from './layouts.ts';
import {Refusal} from './manifest.ts';
import {compareStates, type Likeness, presentStates, type StateName, type States, stateWords} from './states.ts';
import {readStates} from './stored-states.ts';

/** Batch shape and kernels change the last bits of a state; another layer, norm or model changes all of it. */
const LEAST_COSINE = 0.999;
const LENGTH_TOLERANCE = 0.05;

export type Continuity = {
	readonly samples: number;
	readonly worst: number;
	readonly layer: string;
	readonly index: number;
};

/**
 * Whether the server makes the states that are stored: some done samples, spread over the tree, are extracted again and
 * compared, in direction and length. Settles on which side of the norm the stored finals lie, where that is open. null:
 * stopped meanwhile, or nothing to compare with. Throws Refusal and names the worst layer.
 */
export async function checkContinuity(
	norm: FinalNorm,
	done: readonly number[],
	count: number,
	again: (index: number) => Promise<States | null>,
	doubt: (index: number, reason: string) => void,
): Promise<Continuity | null> {
	let worst: Continuity | null = null;
	let samples = 0;
	for (const index of spread(done, count)) {
		const {extraction} = norm;
		const stored = statesOnDisk(extraction, index);
		if (typeof stored === 'string') {
			doubt(index, stored);
			continue;
		}
		const states = await again(index);
		if (states === null) return null;
		samples++;
		for (const [name, bytes] of presentStates(stored)) {
			const {cosine, length} = likest(norm, name, bytes, states);
			if (cosine >= LEAST_COSINE && Math.abs(length - 1) > LENGTH_TOLERANCE) throw otherLength(name, index, length);
			if (worst === null || cosine < worst.worst) worst = {samples, worst: cosine, layer: stateWords(name), index};
		}
	}
	if (worst && worst.worst < LEAST_COSINE) {
		throw new Refusal(
			`the server does not make the states that are stored: layer ${worst.layer} of sample ${worst.index} has cosine ${worst.worst.toFixed(4)}, ${LEAST_COSINE} is the least`,
		);
	}
	return worst && {...worst, samples};
}

const otherLength = (name: StateName, index: number, length: number): Refusal =>
	new Refusal(
		`the server does not make the states that are stored: layer ${stateWords(name)} of sample ${index} points the same way and is ${length.toPrecision(3)} times as long`,
	);

/** Compares with the state of that name; a final of which one side says nothing, with the likest there is. */
function likest(norm: FinalNorm, name: StateName, stored: Buffer, states: States): Likeness {
	const {hiddenSize} = norm.extraction;
	const against = (other: StateName): Likeness => compareStates(stored, states[other] ?? Buffer.alloc(0), hiddenSize);
	const [, side] = /^final_(pre|post)$/.exec(name) ?? [];
	if (states[name] || (name !== 'final' && !side)) return against(name);
	if (side) {
		// Once they are the same in value, the dumps of this server are known to be on the stored side.
		const likeness = against('final');
		if (likeness.cosine >= LEAST_COSINE) norm.settleDumps(side as Side);
		return likeness;
	}
	const [pre, post] = [against('final_pre'), against('final_post')];
	norm.settle(post.distance < pre.distance ? 'post' : 'pre');
	return post.distance < pre.distance ? post : pre;
}

/** The states of a sample's file, or what is wrong with it. */
function statesOnDisk(extraction: Extraction, index: number): States | string {
	try {
		return readStates(samplePath(extraction, index), layoutOf(extraction).form, extraction.hiddenSize);
	} catch (error) {
		if (error instanceof DamagedFile) return error.message;
		throw error;
	}
}

export const continuityWords = ({samples, worst, layer, index}: Continuity): string =>
	`continuity: ${samples} stored samples extracted again, worst cosine ${worst.toFixed(5)} (layer ${layer} of sample ${index})`;
