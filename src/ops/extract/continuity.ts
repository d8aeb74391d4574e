import {closeSync, openSync} from 'node:fs';
import type {ExtractionConfig} from '../target.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {fileSource, windowed} from '../tensor/source.ts';
import {readTensor, readTorchFile, tensorsOf} from '../tensor/torch-reader.ts';
import {samplePath} from './inventory.ts';
import {Refusal} from './manifest.ts';
import {LAYER_NAMES, meanCosine} from './states.ts';

/** Batch shape and kernels change the last bits of a state; another layer, norm or model changes all of it. */
const LEAST_COSINE = 0.999;

export type Continuity = {
	readonly samples: number;
	readonly worst: number;
	readonly layer: string;
	readonly index: number;
};

/**
 * Whether the server makes the states that are stored: some done samples, spread over the tree, are extracted again and
 * compared. null: stopped meanwhile, or nothing to compare with. Throws Refusal and names the worst layer.
 */
export async function checkContinuity(
	extraction: ExtractionConfig,
	done: readonly number[],
	count: number,
	again: (index: number) => Promise<readonly Buffer[] | null>,
	doubt: (index: number, reason: string) => void,
): Promise<Continuity | null> {
	let worst: Continuity | null = null;
	let samples = 0;
	for (const index of spread(done, count)) {
		const stored = storedStates(extraction, index);
		if (typeof stored === 'string') {
			doubt(index, stored);
			continue;
		}
		const states = await again(index);
		if (states === null) return null;
		samples++;
		for (const [layer, bytes] of states.entries()) {
			const cosine = meanCosine(stored[layer] ?? Buffer.alloc(0), bytes, extraction.hiddenSize);
			if (worst === null || cosine < worst.worst)
				worst = {samples, worst: cosine, layer: LAYER_NAMES[layer] ?? String(layer), index};
		}
	}
	if (worst && worst.worst < LEAST_COSINE) {
		throw new Refusal(
			`the server does not make the states that are stored: layer ${worst.layer} of sample ${worst.index} has cosine ${worst.worst.toFixed(4)}, ${LEAST_COSINE} is the least`,
		);
	}
	return worst && {...worst, samples};
}

export const continuityWords = ({samples, worst, layer, index}: Continuity): string =>
	`continuity: ${samples} stored samples extracted again, worst cosine ${worst.toFixed(5)} (layer ${layer} of sample ${index})`;

function spread(indices: readonly number[], count: number): number[] {
	const many = Math.min(count, indices.length);
	const places = Array.from({length: many}, (_, at) =>
		many === 1 ? indices.length - 1 : Math.round((at * (indices.length - 1)) / (many - 1)),
	);
	return places.map(place => indices[place] ?? 0);
}

/** The states of a file on disk, or what is wrong with it. */
function storedStates(extraction: ExtractionConfig, index: number): Buffer[] | string {
	const fd = openSync(samplePath(extraction, index), 'r');
	try {
		const source = windowed(fileSource(fd));
		const file = readTorchFile(source);
		const tensors = new Map(tensorsOf(file.tree));
		return LAYER_NAMES.map((_, layer) => {
			const tensor = tensors.get(`hidden_states[${layer}]`);
			if (!tensor) throw new DamagedFile(`it holds no hidden_states[${layer}]`);
			return readTensor(source, file, tensor).data;
		});
	} catch (error) {
		if (error instanceof DamagedFile) return error.message;
		throw error;
	} finally {
		closeSync(fd);
	}
}
