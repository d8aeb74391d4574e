import {closeSync, openSync, readFileSync} from 'node:fs';
import {basename} from 'node:path';
import {openContainer} from '../tensor/container.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {type Dtype, ITEM_BYTES} from '../tensor/dtype.ts';
import {fileSource} from '../tensor/source.ts';
import {inRowOrder} from '../tensor/torch-reader.ts';

/**
 * Which side of the model's last norm rows lie on. Behind it the mean of (h / w)² is 1 in each row; before it, far from 1.
 * The median row decides; null between the two, and for types that are no floats.
 */
export function sideOfNorm(
	rows: readonly Buffer[],
	dtype: Dtype,
	weight: Float32Array,
): 'pre-norm' | 'post-norm' | null {
	const means: number[] = [];
	for (const row of rows) {
		const values = floatsOf(row, dtype);
		if (!values) return null;
		let sum = 0;
		let count = 0;
		for (const [at, value] of values.entries()) {
			const scale = weight[at] ?? 0;
			if (Math.abs(scale) < 1e-6) continue;
			sum += (value / scale) ** 2;
			count++;
		}
		if (count > 0) means.push(sum / count);
	}
	means.sort((one, other) => one - other);
	const median = means[Math.floor(means.length / 2)];
	if (median === undefined) return null;
	if (median > 0.9 && median < 1.1) return 'post-norm';
	return median < 0.5 || median > 2 ? 'pre-norm' : null;
}

/** Values of BF16, F16 or F32, little-endian; null for other types. */
export function floatsOf(bytes: Buffer, dtype: Dtype): Float32Array | null {
	const count = bytes.length / ITEM_BYTES[dtype];
	const values = new Float32Array(count);
	if (dtype === 'BF16') {
		const wide = new Uint32Array(values.buffer);
		for (let at = 0; at < count; at++) wide[at] = bytes.readUInt16LE(at * 2) << 16;
	} else if (dtype === 'F16') {
		for (let at = 0; at < count; at++) values[at] = half(bytes.readUInt16LE(at * 2));
	} else if (dtype === 'F32') {
		for (let at = 0; at < count; at++) values[at] = bytes.readFloatLE(at * 4);
	} else return null;
	return values;
}

function half(bits: number): number {
	const exponent = (bits >> 10) & 0x1f;
	const fraction = bits & 0x3ff;
	const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
	if (exponent === 0x1f) return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
	return bits & 0x8000 ? -size : size;
}

/**
 * The weight of the last norm of the model in a directory, by its index of shards; null when it cannot be had. Reads the
 * head of one shard and the vector.
 */
export function readModelNorm(directory: string): Float32Array | null {
	try {
		const index: {weight_map?: Record<string, string>} = JSON.parse(
			readFileSync(`${directory}/model.safetensors.index.json`, 'utf8'),
		);
		const [name, shard] = Object.entries(index.weight_map ?? {}).find(([key]) => LAST_NORM.test(key)) ?? [];
		return name && shard ? readNormWeight(`${directory}/${basename(shard)}`, name) : null;
	} catch {
		return null;
	}
}

const LAST_NORM = /(^|\.)model\.norm\.weight$/;

/**
 * The weight of a model's last norm, from a checkpoint shard (`….norm.weight`) or a file with one vector; of several the
 * one that is `called` so. Throws DamagedFile, or the read's own error.
 */
export function readNormWeight(path: string, called?: string): Float32Array {
	const fd = openSync(path, 'r');
	try {
		const {tensors} = openContainer(fileSource(fd), path);
		const named = tensors.filter(({name}) => (called ? name === called : /(^|\.)norm\.weight$/.test(name)));
		const [found, ...others] = named.length > 0 || called ? named : tensors;
		if (!found || others.length > 0 || found.shape.length !== 1)
			throw new DamagedFile('no single norm weight', 'storage');
		const {range, dtype, offset, shape, stride} = found;
		const bytes = inRowOrder(range.open().read(0, range.bytes), ITEM_BYTES[dtype], offset, shape, stride);
		const values = floatsOf(bytes, dtype);
		if (!values) throw new DamagedFile('the norm weight is no float', 'storage');
		return values;
	} finally {
		closeSync(fd);
	}
}
