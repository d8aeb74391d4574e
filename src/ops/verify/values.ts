import type {PlacedTensor} from '../tensor/container.ts';
import {crc32} from '../tensor/crc.ts';
import {ITEM_BYTES} from '../tensor/dtype.ts';
import {inRowOrder} from '../tensor/torch-reader.ts';
import {sideOfNorm} from './norm.ts';
import type {LayerGroup, LayerView, SampleShape} from './sample-shape.ts';
import {type Suspect, suspect} from './verdict.ts';

const ROWS = 8;
/** Ids and masks are read whole; nothing that trains is near this. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;

/** Layers that are one and the same in every row looked at (eight, spread over the sample). */
export function layersAlike({views}: LayerGroup, tokens: number): Suspect | null {
	const comparable = views.filter(({tensor}) => tensor.stride.at(-1) === 1);
	if (tokens === 0 || comparable.length < 2) return null;
	let alike = [comparable.map(view => ({layer: view.layer, readRow: rowReader(view)}))];
	// Most differ in the first row already, and the others need not be read.
	for (const row of spread(tokens)) alike = alike.flatMap(views => sharing(views, ({readRow}) => readRow(row)));
	const [[first, second] = []] = alike;
	return first && second
		? suspect('layers alike', `state ${second.layer} equals state ${first.layer}`, second.layer)
		: null;
}

/** Those of which there are several with the same bytes, together. */
function sharing<T>(all: readonly T[], bytesOf: (one: T) => Buffer): T[][] {
	const groups = new Map<string, T[]>();
	for (const one of all) {
		const print = bytesOf(one).toString('latin1');
		const group = groups.get(print);
		if (group) group.push(one);
		else groups.set(print, [one]);
	}
	return [...groups.values()].filter(({length}) => length > 1);
}

/** Whether the last state of a group is on the side of the norm that its layout promises; undefined when it cannot tell. */
export function wrongSideOfNorm(group: LayerGroup, tokens: number, weight: Float32Array): Suspect | null | undefined {
	const view = group.views.at(-1);
	if (!view || tokens === 0 || view.width !== weight.length || view.tensor.stride.at(-1) !== 1) return undefined;
	const side = sideOfNorm(spread(tokens).map(rowReader(view)), view.tensor.dtype, weight);
	if (side === null) return undefined;
	return side === group.final
		? null
		: suspect('norm', `final state is ${side} where its layout is ${group.final}`, view.layer);
}

const spread = (tokens: number): number[] => {
	const count = Math.min(ROWS, tokens);
	return Array.from({length: count}, (_, at) => Math.floor((at * (tokens - 1)) / Math.max(count - 1, 1)));
};

function rowReader({tensor, start, step, width}: LayerView): (row: number) => Buffer {
	const size = ITEM_BYTES[tensor.dtype];
	// Once for all rows: opening a packed range unpacks it.
	const source = tensor.range.open();
	return row => source.read((start + row * step) * size, width * size);
}

/** CRC of the ids as 64-bit numbers, or why they cannot be ids; null when they are of no type that ids have. */
export function idsOf({ids}: SampleShape): number | Suspect | null {
	if (ids.dtype !== 'I64' && ids.dtype !== 'I32') return null;
	const data = wholeOf(ids);
	if (data === null) return null;
	const halves = new Int32Array(data.length / 4);
	data.copy(Buffer.from(halves.buffer));
	const step = ITEM_BYTES[ids.dtype] / 4;
	for (let at = 0; at < halves.length; at += step) {
		// A token id has 31 bits at most: the upper half of 64 must be empty.
		if ((halves[at] ?? 0) < 0 || (step === 2 && halves[at + 1] !== 0))
			return suspect('ids', `token ${at / step} of ${ids.name} is no id`);
	}
	return crc32(step === 2 ? data : Buffer.from(BigInt64Array.from(halves, BigInt).buffer));
}

/** A mask of nothing but zeros: the sample trains nothing. */
export function emptyMask({mask, tokens}: SampleShape): Suspect | null {
	if (!mask || tokens === 0) return null;
	const data = wholeOf(mask);
	return data?.every(byte => byte === 0) ? suspect('mask', `${mask.name} is all zero`) : null;
}

function wholeOf({range, dtype, offset, shape, stride}: PlacedTensor): Buffer | null {
	const count = shape.reduce((product, size) => product * size, 1);
	if (range.bytes > MAX_LIST_BYTES || count * ITEM_BYTES[dtype] > MAX_LIST_BYTES) return null;
	return inRowOrder(range.open().read(0, range.bytes), ITEM_BYTES[dtype], offset, shape, stride);
}
