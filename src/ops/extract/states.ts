import {lookAt} from './look.ts';

/**
 * What a dump may hold of a sample: three auxiliary states, and the final one before and behind the model's last norm.
 * `final` is the only final of a dump that does not say on which side it lies.
 */
export const STATE_NAMES = ['aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post', 'final'] as const;

export type StateName = (typeof STATE_NAMES)[number];

/** Each as raw bf16 rows [T, H]; what a dump does not hold is missing. */
export type States = Readonly<Partial<Record<StateName, Buffer>>>;

/** `aux 0`, `final pre`. */
export const stateWords = (name: StateName): string => name.replace('_', ' ');

export const presentStates = (states: States): [StateName, Buffer][] =>
	STATE_NAMES.flatMap(name => {
		const bytes = states[name];
		return bytes ? [[name, bytes] as [StateName, Buffer]] : [];
	});

/** What speaks against these states, or null: a NaN or an infinity, or one layer's rows under another one's name. */
export function wrongStates(states: States): string | null {
	const present = presentStates(states);
	for (const [at, [name, bytes]] of present.entries()) {
		if (lookAt(bytes).nonFinite !== null) return `NaN or infinity in layer ${stateWords(name)}`;
		for (const [other, others] of present.slice(0, at))
			if (lookAt(others).crc === lookAt(bytes).crc && others.equals(bytes))
				return `layers ${stateWords(other)} and ${stateWords(name)} are identical`;
	}
	return null;
}

function words16(bytes: Buffer): Uint16Array {
	const aligned = bytes.byteOffset % 2 === 0 ? bytes : Buffer.from(Uint8Array.from(bytes).buffer);
	return new Uint16Array(aligned.buffer, aligned.byteOffset, bytes.length >> 1);
}

/** How two bf16 states [T, H] compare, each a mean over the rows. */
export type Likeness = {
	readonly cosine: number;
	/** Length of the other one's row, the first one's being 1. */
	readonly length: number;
	/** Length of the difference, likewise. */
	readonly distance: number;
};

const UNLIKE: Likeness = {cosine: 0, length: 0, distance: 1};

/**
 * Row by row: a few rows of every sample are a thousand times longer than the rest, and over all values together they alone
 * would decide. Two states can point the same way and still be on different sides of a norm: then the length tells.
 */
export function compareStates(one: Buffer, other: Buffer, hiddenSize: number): Likeness {
	const [a, b] = [floats(one), floats(other)];
	const rows = a.length / hiddenSize;
	if (a.length !== b.length || rows === 0) return UNLIKE;
	const sum = {cosine: 0, length: 0, distance: 0};
	for (let row = 0; row < rows; row++) {
		let dot = 0;
		let aa = 0;
		let bb = 0;
		for (let at = row * hiddenSize; at < (row + 1) * hiddenSize; at++) {
			const x = a[at] ?? 0;
			const y = b[at] ?? 0;
			dot += x * y;
			aa += x * x;
			bb += y * y;
		}
		const none = aa === 0 && bb === 0;
		sum.cosine += none ? 1 : dot / Math.sqrt(aa * bb) || 0;
		sum.length += none ? 1 : Math.sqrt(bb / aa);
		sum.distance += none ? 0 : Math.sqrt(Math.max(aa + bb - 2 * dot, 0) / aa);
	}
	return {cosine: sum.cosine / rows, length: sum.length / rows, distance: sum.distance / rows};
}

/** bf16 is the upper half of a float. */
function floats(bytes: Buffer): Float32Array {
	const values = words16(bytes);
	const wide = new Uint32Array(values.length);
	for (let at = 0; at < values.length; at++) wide[at] = (values[at] ?? 0) << 16;
	return new Float32Array(wide.buffer);
}
