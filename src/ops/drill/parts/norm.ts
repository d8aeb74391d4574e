import {readFileSync} from 'node:fs';
import type {PartBox} from './part-box.ts';

const KEY = 'language_model.model.norm.weight';

/** The weight of the model's last norm, raw bf16 [H], from its shard. */
export function normWeight({paths: {model}}: PartBox): Buffer {
	const index: {weight_map: Record<string, string>} = JSON.parse(
		readFileSync(`${model}/model.safetensors.index.json`, 'utf8'),
	);
	const file = readFileSync(`${model}/${index.weight_map[KEY]}`);
	const start = 8 + Number(file.readBigUInt64LE(0));
	const header = JSON.parse(file.toString('utf8', 8, start));
	const [from, to] = header[KEY].data_offsets;
	return Buffer.from(file.subarray(start + from, start + to));
}

/** RMS norm over rows [T, H], bf16 in and out, as the model's kernel: the mean in wide numbers, rounded before the weight. */
export function normed(rows: Buffer, weight: Buffer): Buffer {
	const width = weight.length / 2;
	const out = Buffer.alloc(rows.length);
	const scale = Array.from({length: width}, (_, at) => wide(weight.readUInt16LE(at * 2)));
	for (let from = 0; from < rows.length; from += weight.length) {
		const row = scale.map((_, at) => wide(rows.readUInt16LE(from + at * 2)));
		const by = 1 / Math.sqrt(row.reduce((sum, each) => sum + each * each, 0) / width + 1e-6);
		for (const [at, each] of row.entries())
			out.writeUInt16LE(narrow(wide(narrow(each * by)) * (scale[at] ?? 1)), from + at * 2);
	}
	return out;
}

const bits = new DataView(new ArrayBuffer(4));

function wide(half: number): number {
	bits.setUint32(0, half << 16);
	return bits.getFloat32(0);
}

/** To the nearest, ties to even. */
function narrow(value: number): number {
	bits.setFloat32(0, value);
	const whole = bits.getUint32(0);
	return (whole + 0x7fff + ((whole >>> 16) & 1)) >>> 16;
}
