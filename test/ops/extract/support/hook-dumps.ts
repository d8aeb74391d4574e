import {createHash} from 'node:crypto';
import {mkdirSync, renameSync, writeFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {HIDDEN_SIZE} from '../../../../src/ops/drill/build-data.ts';
import {hiddenStates} from '../../../../src/ops/drill/states.ts';
import {LAYOUTS, type LayoutName} from '../../../../src/ops/extract/layouts.ts';
import {formPieces, planForm} from '../../../../src/ops/extract/sample-file.ts';
import {stagedTensors} from '../../../../src/ops/extract/sidecar.ts';

export const STATES = ['aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post'] as const;

/** Weight of the stand-in model's last norm: no two columns alike, none near 1. */
export const NORM_WEIGHT = Float32Array.from({length: HIDDEN_SIZE}, (_, at) => 0.25 + at / 8);

const float = (bits: number): number => new Float32Array(Uint32Array.of(bits << 16).buffer)[0] ?? 0;

const bf16 = (value: number): number => {
	const bits = new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
	return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
};

/** Behind the norm: h / rms(h) · w, row by row. */
export function postNorm(pre: Buffer): Buffer {
	const made = Buffer.alloc(pre.length);
	for (let row = 0; row < pre.length; row += HIDDEN_SIZE * 2) {
		const values = Array.from({length: HIDDEN_SIZE}, (_, at) => float(pre.readUInt16LE(row + at * 2)));
		const rms = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / HIDDEN_SIZE);
		for (const [at, value] of values.entries())
			made.writeUInt16LE(bf16((value / rms) * (NORM_WEIGHT[at] ?? 1)), row + at * 2);
	}
	return made;
}

/** The five states of the stand-in model for these ids. */
export function fiveStates(ids: readonly number[], shift = 0): Record<(typeof STATES)[number], Buffer> {
	const [aux_0, aux_1, aux_2, final_pre] = [0, 1, 2, 3].map(layer => hiddenStates(ids, layer + shift, HIDDEN_SIZE));
	if (!aux_0 || !aux_1 || !aux_2 || !final_pre) throw new Error('four states');
	return {aux_0, aux_1, aux_2, final_pre, final_post: postNorm(final_pre)};
}

function named(ids: readonly number[], shift: number, swap = false): ReturnType<typeof fiveStates> {
	const states = fiveStates(ids, shift);
	return swap ? {...states, final_pre: states.final_post, final_post: states.final_pre} : states;
}

export const packed = (ids: readonly number[]): Buffer => Buffer.from(BigInt64Array.from(ids, BigInt).buffer);

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

export type RawOptions = {
	/** Tokens a part. */
	readonly chunk?: number;
	/** Changes what a part says of itself before it is written. */
	readonly meta?: (meta: Record<string, unknown>) => void;
	readonly data?: (name: string, data: Buffer) => Buffer;
	/** Parts that are not written. */
	readonly without?: readonly number[];
	readonly shift?: number;
	/** The two finals under each other's name. */
	readonly swap?: boolean;
};

export const SERVER = {pid: 4711, start_ticks: 815, boot_id: 'b', parent: {pid: 1, start_ticks: 1}};

/** As the hook writes: raw rows of each chunk, whole from their first appearance, with sums and the hash of their ids. */
export function writeRaw(dumps: string, rid: string, ids: readonly number[], options: RawOptions = {}): void {
	const {chunk = ids.length, meta: change, data: damage = (_, data) => data, without = [], shift = 0, swap} = options;
	const states = named(ids, shift, swap);
	for (let from = 0, part = 0; from < ids.length; from += chunk, part++) {
		if (without.includes(part)) continue;
		const own = ids.slice(from, from + chunk);
		const building = `${dumps}/.req_${rid}.tmp`;
		mkdirSync(building, {recursive: true});
		const files: Record<string, object> = {};
		for (const name of STATES) {
			const rows = states[name].subarray(from * HIDDEN_SIZE * 2, (from + own.length) * HIDDEN_SIZE * 2);
			files[`${name}.bin`] = {bytes: rows.length, crc32: crc32(rows).toString(16).padStart(8, '0')};
			writeFileSync(`${building}/${name}.bin`, damage(name, Buffer.from(rows)));
		}
		const meta = {
			...{schema: 'relight.dump/1', rid, T: own.length, prefix_len: from, part, server: SERVER, H: HIDDEN_SIZE},
			...{layers: [2, 30, 58], dtype: 'bfloat16', ids_sha256: sha256(packed(own)), files},
		};
		change?.(meta);
		writeFileSync(`${building}/meta.json`, JSON.stringify(meta));
		renameSync(building, part === 0 ? `${dumps}/req_${rid}` : `${dumps}/req_${rid}/part_${part}`);
	}
}

export function writeRefusal(dumps: string, rid: string): void {
	mkdirSync(`${dumps}/req_${rid}`);
	const error = {schema: 'relight.dump-error/1', rid, reason: 'not_finite', detail: {state: 'aux_0', row: 2}};
	writeFileSync(`${dumps}/req_${rid}/error.json`, JSON.stringify(error));
}

export type StagedOptions = {
	readonly layout: LayoutName;
	readonly shift?: number;
	/** The final state of a legacy file; the hook's own default is behind the norm. */
	readonly final?: 'pre' | 'post';
	/** The two finals under each other's name. */
	readonly swap?: boolean;
	readonly file?: (bytes: Buffer) => Buffer;
	readonly sidecar?: (sidecar: Record<string, unknown>) => void;
};

/** As the hook stages: the file with a mask of ones and no sums, its sidecar before it. */
export function writeStaged(staging: string, rid: string, ids: readonly number[], options: StagedOptions): void {
	const {layout, final = 'post', file: damage = bytes => bytes, sidecar: change = () => {}, shift = 0} = options;
	const states = named(ids, shift, options.swap);
	const {form, prefix} = LAYOUTS[layout];
	const index = /^relight-(\d+)-/.exec(rid)?.[1];
	const plan = planForm(form, index === undefined ? 'archive' : `${prefix}${index}`, ids.length, HIDDEN_SIZE);
	const sample = {index: 0, inputIds: ids, lossMask: ids.map(() => 1)};
	const all = {...states, final: states[`final_${final}`]};
	const bytes = withoutSums(Buffer.concat([...formPieces(form, plan, sample, all, HIDDEN_SIZE)]));
	const sidecar = {
		...{rid, T: ids.length, prefix_len: 0, server: SERVER, H: HIDDEN_SIZE, part: 0, layers: [2, 30, 58]},
		...{dtype: 'bfloat16', ids_sha256: sha256(packed(ids)), schema: 'relight.staged/1', request: rid},
		...{file: `${rid}.ready`, bytes: bytes.length, layout, norm: layout === 'legacy' ? final : 'as the layout says'},
		placeholders: layout === 'speculators' ? [] : ['loss_mask'],
		tensors: stagedTensors(form, plan, ids.length, HIDDEN_SIZE),
	};
	change(sidecar);
	writeFileSync(`${staging}/${rid}.json`, JSON.stringify(sidecar));
	writeFileSync(`${staging}/${rid}.tmp`, damage(bytes));
	renameSync(`${staging}/${rid}.tmp`, `${staging}/${rid}.ready`);
}

/** Every CRC field set to 0, found by walking the archive's own directory. */
function withoutSums(file: Buffer): Buffer {
	if (file.readUInt32LE(0) !== 0x04034b50) return file;
	for (let at = file.readUInt32LE(file.length - 6); file.readUInt32LE(at) === 0x02014b50; ) {
		const header = file.readUInt32LE(at + 42);
		const start = header + 30 + file.readUInt16LE(header + 26) + file.readUInt16LE(header + 28);
		file.writeUInt32LE(0, start + file.readUInt32LE(at + 24) + 4);
		file.writeUInt32LE(0, at + 16);
		at += 46 + file.readUInt16LE(at + 28) + file.readUInt16LE(at + 30);
	}
	return file;
}
