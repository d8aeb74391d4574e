import {createHash} from 'node:crypto';
import {existsSync, mkdirSync, renameSync, rmSync, statfsSync, writeFileSync} from 'node:fs';
import {crc32} from 'node:zlib';
import {type Form, type ListPart, leavesOf, type StatesPart, tensorOf} from '../../extract/forms.ts';
import {LAYOUTS, type LayoutName, sampleTree} from '../../extract/layouts.ts';
import type {StateName} from '../../extract/states.ts';
import {ITEM_BYTES} from '../../tensor/dtype.ts';
import {elements, strides, type Tensor} from '../../tensor/pickle.ts';
import {contentOf, planTorchFile} from '../../tensor/torch-file.ts';
import {descriptor, directory, localHeader} from '../../tensor/zip.ts';

export const HOOK_STATES = ['aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post'] as const;
export type HookStates = Readonly<Record<(typeof HOOK_STATES)[number], Buffer>>;

/** Of one pass: token ids, and the five states as raw bf16 [T, H]. `rid` null: a server that does not tell it. */
export type HookRequest = {readonly rid: string | null; readonly ids: readonly number[]; readonly states: HookStates};

/** What `--forward-hooks` says to the slot `write`. */
export type WriterConfig = {
	readonly dumpDir: string;
	readonly layers: readonly number[];
	readonly ridPrefix: string;
	readonly nameless: boolean;
	readonly staging: string | null;
	readonly layout: LayoutName;
	readonly final: 'pre' | 'post';
	readonly hiddenSize: number;
};

/** What the hook says of itself in every dump. */
export type WriterFacts = {
	readonly server: object;
	readonly moduleSha256: string;
	readonly versions: object;
	/** Epoch ms. */
	readonly now: () => number;
};

/**
 * What relight_hs.py leaves of a pass, byte for byte, without a torch: raw dumps or staged containers, and its status. It
 * refuses nothing but a full disk, for the states that it is given are made up. A test compares it with the hook.
 */
export class HookWriter {
	private readonly written: Record<string, number> = {};
	private readonly skipped: Record<string, number> = {};

	constructor(
		private readonly config: WriterConfig,
		private readonly facts: WriterFacts,
	) {
		for (const directory of [config.dumpDir, config.staging]) if (directory) mkdirSync(directory, {recursive: true});
		this.saveStatus();
	}

	pass(requests: readonly HookRequest[]): void {
		for (const request of requests) {
			const why = this.whyNot(request.rid);
			if (why === null) this.write(request);
			else this.skipped[why] = (this.skipped[why] ?? 0) + 1;
		}
		this.saveStatus();
	}

	private whyNot(rid: string | null): string | null {
		if (rid === null) return this.config.nameless ? null : 'without_rids';
		if (rid.startsWith('HEALTH_CHECK')) return 'health_check';
		if (!rid.startsWith(this.config.ridPrefix)) return 'foreign_rid';
		return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(rid) ? null : 'unusable_rid';
	}

	private write(request: HookRequest): void {
		const {staging, dumpDir} = this.config;
		const name = request.rid ?? `ids-${hashOf(request.ids)}`;
		const done = staging ? `${staging}/${name}.ready` : `${dumpDir}/req_${name}/meta.json`;
		if (existsSync(done)) {
			this.skipped.duplicate = (this.skipped.duplicate ?? 0) + 1;
			return;
		}
		const needed = 2 * HOOK_STATES.reduce((sum, state) => sum + request.states[state].length, 0);
		const {bavail, bsize} = statfsSync(staging ?? dumpDir);
		if (bavail * bsize < needed) {
			this.refuse(request, name, {free_bytes: bavail * bsize, needed_bytes: needed});
			return;
		}
		if (staging) this.writeContainer(staging, name, request);
		else this.writeRaw(name, request);
		this.written.requests = (this.written.requests ?? 0) + 1;
	}

	private common({rid, ids}: HookRequest): object {
		const {server, moduleSha256, now} = this.facts;
		return {rid, T: ids.length, prefix_len: 0, server, module_sha256: moduleSha256, ended_at: now()};
	}

	private about(request: HookRequest): object {
		return {
			...this.common(request),
			H: this.config.hiddenSize,
			part: 0,
			layers: this.config.layers,
			dtype: 'bfloat16',
			ids_sha256: hashOf(request.ids),
			tp_rank: 0,
			versions: this.facts.versions,
		};
	}

	private writeRaw(name: string, request: HookRequest): void {
		const {dumpDir} = this.config;
		const temporary = `${dumpDir}/.req_${name}.tmp`;
		rmSync(temporary, {recursive: true, force: true});
		mkdirSync(temporary);
		const files: Record<string, object> = {};
		for (const state of HOOK_STATES) {
			const bytes = request.states[state];
			writeFileSync(`${temporary}/${state}.bin`, bytes);
			files[`${state}.bin`] = {bytes: bytes.length, crc32: crc32(bytes).toString(16).padStart(8, '0')};
		}
		const norm = {'final_pre.bin': 'pre', 'final_post.bin': 'post'};
		const meta = {...this.about(request), schema: 'relight.dump/1', norm, files};
		writeFileSync(`${temporary}/meta.json`, JSON.stringify(meta));
		rmSync(`${dumpDir}/req_${name}`, {recursive: true, force: true});
		renameSync(temporary, `${dumpDir}/req_${name}`);
	}

	private writeContainer(staging: string, name: string, request: HookRequest): void {
		const {bytes, tensors} = container(this.config, request);
		const {layout, final} = this.config;
		writeFileSync(`${staging}/${name}.tmp`, bytes);
		const sidecar = {
			...this.about(request),
			schema: 'relight.staged/1',
			request: name,
			file: `${name}.ready`,
			bytes: bytes.length,
			layout,
			norm: NORMS[layout] ?? final,
			placeholders: tensors.map(({key}) => key).filter(key => key === 'loss_mask'),
			tensors,
		};
		writeFileSync(`${staging}/${name}.json.tmp`, JSON.stringify(sidecar));
		renameSync(`${staging}/${name}.json.tmp`, `${staging}/${name}.json`);
		renameSync(`${staging}/${name}.tmp`, `${staging}/${name}.ready`);
	}

	private refuse(request: HookRequest, name: string, detail: object): void {
		const report = {...this.common(request), schema: 'relight.dump-error/1', reason: 'no_space', detail};
		mkdirSync(`${this.config.dumpDir}/req_${name}`, {recursive: true});
		writeFileSync(`${this.config.dumpDir}/req_${name}/error.json`, JSON.stringify(report));
	}

	private saveStatus(): void {
		const {server, moduleSha256, versions, now} = this.facts;
		const status = {
			schema: 'relight.hook-status/1',
			server,
			module_sha256: moduleSha256,
			slots: ['aux_0', 'aux_1', 'aux_2', 'final', 'write'],
			written: this.written,
			skipped: this.skipped,
			refused: {},
			exceptions: 0,
			last_refusal: null,
			last_error: null,
			versions,
			saved_at: now(),
		};
		const path = `${this.config.dumpDir}/relight_hs.status.json`;
		writeFileSync(`${path}.tmp`, JSON.stringify(status));
		renameSync(`${path}.tmp`, path);
	}
}

/** What the final state of a container is, by layout; legacy: what the configuration says. */
const NORMS: Readonly<Partial<Record<LayoutName, unknown>>> = {
	specforge: 'post',
	speculators: 'pre',
	universal: {hidden_state: 'post', hidden_states: 'pre'},
};

type Described = {readonly key: string; readonly offset: number} & Readonly<Record<string, unknown>>;
type Container = {readonly bytes: Buffer; readonly tensors: readonly Described[]};

/** The finished file of a layout with every CRC field 0, and where its tensors lie. */
export function container(config: WriterConfig, request: HookRequest): Container {
	const {form} = LAYOUTS[config.layout];
	const {datas, leaves} = storagesOf(form, config, request);
	return form.container === 'torch' ? torchContainer(config, request, datas, leaves) : safeContainer(datas, leaves);
}

type PlacedLeaf = {readonly key: string; readonly tensor: Tensor; readonly storage: number};

/** Each storage's bytes in order of first use, and which of them each tensor lies in. */
function storagesOf(form: Form, {hiddenSize, final}: WriterConfig, {ids, states}: HookRequest) {
	const datas: Buffer[] = [];
	const shared = new Map<string, number>();
	const state = (name: StateName): Buffer => states[name === 'final' ? (`final_${final}` as const) : name];
	const dataOf = (part: ListPart | StatesPart): Buffer => {
		if (part.kind !== 'states') return int64(part.kind === 'ids' ? ids : ids.map(() => 1));
		return beside((part.within ?? part.columns).map(state), ids.length);
	};
	const leaves = leavesOf(form).map(({name, part}): PlacedLeaf => {
		const tensor = tensorOf(part, ids.length, hiddenSize);
		const known = tensor.view && shared.get(tensor.view.storage);
		const storage = known ?? datas.push(dataOf(part)) - 1;
		if (tensor.view) shared.set(tensor.view.storage, storage);
		return {key: name.replace(/\[(\d+)\]$/, '.$1'), tensor, storage};
	});
	return {datas, leaves};
}

/** Rows side by side: [T, H] each becomes [T, k·H]. */
function beside(states: readonly Buffer[], rows: number): Buffer {
	const [only, ...others] = states;
	if (only && others.length === 0) return only;
	const width = (only?.length ?? 0) / rows;
	return Buffer.concat(
		Array.from({length: rows}, (_, row) => states.map(each => each.subarray(row * width, (row + 1) * width))).flat(),
	);
}

function torchContainer(
	{layout, hiddenSize, ridPrefix}: WriterConfig,
	{rid, ids}: HookRequest,
	datas: readonly Buffer[],
	leaves: readonly PlacedLeaf[],
): Container {
	const index = /^\d+(?=-|$)/.exec((rid ?? '').slice(ridPrefix.length))?.[0];
	const root = index === undefined ? 'archive' : `data_${index}`;
	const plan = planTorchFile(root, sampleTree(layout, ids.length, hiddenSize));
	const pieces = plan.zip.items.flatMap(item => [
		localHeader(item),
		contentOf(item.name, plan, datas),
		descriptor(item, 0),
	]);
	const offsets = new Map(plan.zip.items.map(({name, dataOffset}) => [name, dataOffset]));
	return {
		bytes: Buffer.concat([...pieces, directory(plan.zip, [])]),
		tensors: leaves.map(leaf => described(leaf, offsets.get(`${root}/data/${leaf.storage}`) ?? 0)),
	};
}

const SAFE_NAMES = {I64: 'I64', BF16: 'BF16'} as const;

function safeContainer(datas: readonly Buffer[], leaves: readonly PlacedLeaf[]): Container {
	const header: Record<string, object> = {};
	const starts: number[] = [];
	let at = 0;
	for (const [place, {key, tensor}] of leaves.entries()) {
		const size = datas[place]?.length ?? 0;
		starts.push(at);
		const dtype = SAFE_NAMES[tensor.dtype as 'I64' | 'BF16'];
		header[key] = {dtype, shape: tensor.shape, data_offsets: [at, at + size]};
		at += size;
	}
	const text = Buffer.from(JSON.stringify(header));
	const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, ' ')]);
	const length = Buffer.alloc(8);
	length.writeBigUInt64LE(BigInt(padded.length));
	return {
		bytes: Buffer.concat([length, padded, ...datas]),
		tensors: leaves.map((leaf, place) => described(leaf, 8 + padded.length + (starts[place] ?? 0))),
	};
}

function described({key, tensor}: PlacedLeaf, from: number): Described {
	const {dtype, shape, view} = tensor;
	return {
		key,
		dtype: dtype === 'I64' ? 'int64' : 'bfloat16',
		shape,
		stride: view?.stride ?? strides(shape),
		offset: from + (view?.offset ?? 0) * 2,
		nbytes: elements(shape) * ITEM_BYTES[dtype],
	};
}

const int64 = (values: readonly number[]): Buffer => Buffer.from(BigInt64Array.from(values, BigInt).buffer);

const hashOf = (ids: readonly number[]): string => createHash('sha256').update(int64(ids)).digest('hex');
