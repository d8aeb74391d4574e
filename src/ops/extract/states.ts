/** The four states of a sample as raw bf16 rows, in the order of the file: three auxiliary layers, then the final one. */
export const LAYER_NAMES = ['aux 0', 'aux 1', 'aux 2', 'final'] as const;

/** What speaks against these states, or null: a NaN or an infinity, or one layer's rows under another one's name. */
export function wrongStates(states: readonly Buffer[]): string | null {
	for (const [layer, bytes] of states.entries()) {
		if (!allFinite(bytes)) return `NaN or infinity in layer ${nameOf(layer)}`;
		for (let other = 0; other < layer; other++) {
			if (states[other]?.equals(bytes)) return `layers ${nameOf(other)} and ${nameOf(layer)} are identical`;
		}
	}
	return null;
}

const nameOf = (layer: number): string => LAYER_NAMES[layer] ?? String(layer);

/** bf16 is not finite when its exponent is all ones. Two values at a time. */
function allFinite(bytes: Buffer): boolean {
	const values = words16(bytes);
	if (values.byteOffset % 4 !== 0 || values.length % 2 !== 0) return values.every(value => (value & 0x7f80) !== 0x7f80);
	const pairs = new Uint32Array(values.buffer, values.byteOffset, values.length / 2);
	for (let at = 0; at < pairs.length; at++) {
		const pair = pairs[at] ?? 0;
		if ((pair & 0x7f80) === 0x7f80 || (pair & 0x7f800000) === 0x7f800000) return false;
	}
	return true;
}

function words16(bytes: Buffer): Uint16Array {
	const aligned = bytes.byteOffset % 2 === 0 ? bytes : Buffer.from(Uint8Array.from(bytes).buffer);
	return new Uint16Array(aligned.buffer, aligned.byteOffset, bytes.length >> 1);
}

/**
 * Mean over the rows of the cosine between two bf16 states [T, H]. Row by row: a few rows of every sample are a thousand
 * times longer than the rest, and over all values together they alone would decide.
 */
export function meanCosine(one: Buffer, other: Buffer, hiddenSize: number): number {
	const [a, b] = [floats(one), floats(other)];
	const rows = a.length / hiddenSize;
	if (a.length !== b.length || rows === 0) return 0;
	let sum = 0;
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
		sum += aa === 0 && bb === 0 ? 1 : dot / Math.sqrt(aa * bb) || 0;
	}
	return sum / rows;
}

/** bf16 is the upper half of a float. */
function floats(bytes: Buffer): Float32Array {
	const values = words16(bytes);
	const wide = new Uint32Array(values.length);
	for (let at = 0; at < values.length; at++) wide[at] = (values[at] ?? 0) << 16;
	return new Float32Array(wide.buffer);
}
