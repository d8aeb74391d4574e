export const HIDDEN_SIZE = 64;

/**
 * What the stand-in model answers: bf16 values [T, H], made from the token ids up to each position and the layer, so that
 * a file with the states of another request never passes for right. All finite, none zero.
 * Layers 0–2 are the auxiliary ones, 3 is the final one. Little-endian raw bytes.
 */
export function hiddenStates(ids: readonly number[], layer: number, hiddenSize: number): Buffer {
	const values = new Uint16Array(ids.length * hiddenSize);
	let prefix = 0x811c9dc5 ^ Math.imul(layer + 1, 0x9e3779b1);
	let at = 0;
	for (const id of ids) {
		prefix = Math.imul(prefix ^ id, 0x01000193) ^ (prefix >>> 13);
		let state = prefix;
		for (let column = 0; column < hiddenSize; column++) {
			state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
			// sign and mantissa from the hash, exponent 2^-8 … 2^7
			values[at++] = ((state >>> 16) & 0x807f) | ((0x77 + ((state >>> 4) & 0xf)) << 7);
		}
	}
	return Buffer.from(values.buffer);
}

export const LAYERS = 4;
