import {ITEM_BYTES} from '../tensor/dtype.ts';
import {strides} from '../tensor/pickle.ts';
import type {Wanted} from './dumps.ts';
import {type Form, leavesOf, tensorOf} from './forms.ts';
import {idsHash} from './raw-dump.ts';
import type {SamplePlan} from './sample-file.ts';

/** What the hook says of a file it staged; the source is relight.staged/1 of relight_hs.py. */
export type Sidecar = {
	readonly schema?: string;
	readonly request?: string;
	readonly file?: string;
	readonly bytes?: number;
	readonly T?: number;
	readonly H?: number;
	readonly part?: number;
	readonly prefix_len?: number;
	readonly dtype?: string;
	readonly ids_sha256?: string;
	readonly layers?: readonly number[];
	readonly layout?: string;
	/** `pre` or `post`, or by key where a file holds both. */
	readonly norm?: unknown;
	readonly placeholders?: readonly string[];
	readonly tensors?: readonly StagedTensor[];
};

export type StagedTensor = {
	readonly key: string;
	readonly dtype: string;
	readonly shape: readonly number[];
	/** In elements. */
	readonly stride: readonly number[];
	/** In bytes of the file. */
	readonly offset: number;
	readonly nbytes: number;
};

/** What speaks against a sidecar, or null: it has to describe the very file that this program would write. */
export function wrongSidecar(sidecar: Sidecar, wanted: Wanted, form: Form, plan: SamplePlan): string | null {
	const {rid, rows, ids, hiddenSize} = wanted;
	if (sidecar.schema !== 'relight.staged/1') return `its sidecar is ${sidecar.schema}, not relight.staged/1`;
	if (sidecar.request !== rid || sidecar.file !== `${rid}.ready`)
		return `its sidecar is of ${sidecar.request} and ${sidecar.file}, not of ${rid}`;
	if (sidecar.ids_sha256 !== idsHash(ids)) return 'it is of other token ids';
	if (sidecar.T !== rows) return `it has ${sidecar.T} rows where ${rows} belong`;
	if (sidecar.part !== 0 || sidecar.prefix_len !== 0) return `it starts at row ${sidecar.prefix_len}, not at the first`;
	if (sidecar.H !== hiddenSize || sidecar.dtype !== 'bfloat16')
		return `its states are ${sidecar.dtype} [T, ${sidecar.H}]`;
	if (sidecar.bytes !== plan.bytes) return `its sidecar says ${sidecar.bytes} bytes where ${plan.bytes} belong`;
	const masks = leavesOf(form).flatMap(({key, part}) => (part.kind === 'mask' ? [key] : []));
	if (String(sidecar.placeholders) !== String(masks))
		return `its placeholders are ${sidecar.placeholders}, not ${masks}`;
	const right = stagedTensors(form, plan, rows, hiddenSize);
	const told = new Map(sidecar.tensors?.map(each => [each.key, each]));
	if (told.size !== right.length) return `its sidecar names ${told.size} tensors where ${right.length} belong`;
	const odd = right.find(each => words(each) !== words(told.get(each.key)));
	return odd ? `its sidecar says ${words(told.get(odd.key))} where ${words(odd)} belongs` : null;
}

function words(tensor: StagedTensor | undefined): string {
	if (!tensor) return 'nothing';
	const {key, dtype, shape, stride, offset, nbytes} = tensor;
	return `${key} ${dtype} [${shape}] by [${stride}], ${nbytes} bytes at ${offset}`;
}

/** Every tensor of a planned file, with the names that the hook uses. */
export function stagedTensors(form: Form, plan: SamplePlan, tokens: number, hiddenSize: number): StagedTensor[] {
	let storages = 0;
	const places = new Map<string, number>();
	return leavesOf(form).map(({name, part}) => {
		const {dtype, shape, view} = tensorOf(part, tokens, hiddenSize);
		const storage = view?.storage ?? name;
		if (!places.has(storage)) places.set(storage, dataOffset(plan, storages++, name));
		const size = ITEM_BYTES[dtype];
		return {
			key: name.replace(/\[(\d+)\]$/, '.$1'),
			dtype: dtype === 'BF16' ? 'bfloat16' : dtype === 'I64' ? 'int64' : dtype,
			shape,
			stride: view?.stride ?? strides(shape),
			offset: (places.get(storage) ?? 0) + (view?.offset ?? 0) * size,
			nbytes: shape.reduce((product, count) => product * count, size),
		};
	});
}

/** Where the n-th storage, or the tensor of that name, starts in the file. */
export function dataOffset(plan: SamplePlan, storage: number, name: string): number {
	if (plan.container === 'safetensors') return plan.safetensors.tensors.find(each => each.name === name)?.from ?? 0;
	return plan.torch.zip.items.find(item => item.name.endsWith(`/data/${storage}`))?.dataOffset ?? 0;
}
