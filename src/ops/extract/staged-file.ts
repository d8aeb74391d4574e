import {crc32, joinedCrc} from '../tensor/crc.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {scanRange} from '../tensor/scan.ts';
import {partOf, type Source} from '../tensor/source.ts';
import {contentOf} from '../tensor/torch-file.ts';
import {descriptor, directory, localHeader} from '../tensor/zip.ts';
import type {Patch} from './adopt.ts';
import type {Sample} from './dataset.ts';
import {spread} from './final-norm.ts';
import type {Form, Leaf} from './forms.ts';
import {numbers, type SamplePlan, storagesOf} from './sample-file.ts';
import {dataOffset} from './sidecar.ts';
import {type StateName, type States, stateWords} from './states.ts';

/** What makes a staged file the one that would have been written from raw states, and the sum of that. */
export type Finish = {readonly patches: readonly Patch[]; readonly crc32: number};

/** A storage of the file: where its data lies, what it sums up to when it is finished. */
type Storage = {readonly from: number; readonly bytes: number; readonly crc: number; readonly patch: Buffer | null};

/**
 * Looks at a staged file once, every byte of it: all that is not data must be what this program writes, with sums of 0; ids
 * those of the sample; states finite and without pages that nobody wrote. Throws DamagedFile.
 */
export function inspectStaged(
	source: Source,
	form: Form,
	plan: SamplePlan,
	sample: Sample,
	hiddenSize: number,
): Finish {
	if (source.size !== plan.bytes) throw new DamagedFile(`${source.size} bytes where ${plan.bytes} belong`, 'cut off');
	const storages = storagesOf(form).map((leaf, at) =>
		storageOf(source, leaf, dataOffset(plan, at, leaf.name), sample, hiddenSize),
	);
	return plan.container === 'torch' ? torchFinish(source, plan, storages) : safetensorsFinish(source, plan, storages);
}

function storageOf(source: Source, leaf: Leaf, from: number, sample: Sample, hiddenSize: number): Storage {
	const {name, part} = leaf;
	if (part.kind === 'states') {
		const columns = part.within ?? part.columns;
		const bytes = sample.inputIds.length * columns.length * hiddenSize * 2;
		return {from, bytes, crc: scanned(partOf(source, from, bytes), name, columns, from, hiddenSize), patch: null};
	}
	if (part.kind === 'mask') {
		const patch = numbers(part, sample.lossMask);
		return {from, bytes: patch.length, crc: crc32(patch), patch};
	}
	const ids = numbers(part, sample.inputIds);
	if (!source.read(from, ids.length).equals(ids)) throw new DamagedFile(`${name} are not those of this record`);
	return {from, bytes: ids.length, crc: crc32(ids), patch: null};
}

/** The sum of a storage of states, in the one pass that also looks at its values. */
function scanned(
	data: Source,
	name: string,
	columns: readonly StateName[],
	offset: number,
	hiddenSize: number,
): number {
	const range = {name, bytes: data.size, offset, crc: null, open: () => data};
	const {crc, nonFinite, zeroPages} = scanRange(range, 'BF16', () => true);
	const column = columns[Math.floor((nonFinite ?? 0) / hiddenSize) % columns.length];
	if (nonFinite !== null && column) throw new DamagedFile(`NaN or infinity in layer ${stateWords(column)}`);
	if (zeroPages > 0) throw new DamagedFile(`${name} has ${zeroPages} pages of zeros`);
	return crc;
}

const patchesOf = (storages: readonly Storage[]): Patch[] =>
	storages.flatMap(({from, patch}) => (patch ? [{at: from, bytes: patch}] : []));

function torchFinish(source: Source, {torch}: SamplePlan & {container: 'torch'}, storages: readonly Storage[]): Finish {
	const patches = patchesOf(storages);
	const sums: {crc: number; bytes: number}[] = [];
	const add = (bytes: Buffer): Buffer => {
		sums.push({crc: crc32(bytes), bytes: bytes.length});
		return bytes;
	};
	const crcs = torch.zip.items.map(item => {
		requireBytes(source, item.headerOffset, add(localHeader(item)), `header of ${item.name}`);
		const behind = item.dataOffset + item.bytes;
		requireBytes(source, behind, descriptor(item, 0), `descriptor of ${item.name}`);
		const storage = storages.find(({from}) => from === item.dataOffset);
		const content = storage ? null : contentOf(item.name, torch, []);
		if (content) requireBytes(source, item.dataOffset, content, item.name);
		const crc = storage ? storage.crc : crc32(content ?? Buffer.alloc(0));
		sums.push({crc, bytes: item.bytes});
		patches.push({at: behind, bytes: add(descriptor(item, crc))});
		return crc;
	});
	const {directoryOffset} = torch.zip;
	const open = directory(
		torch.zip,
		crcs.map(() => 0),
	);
	requireBytes(source, directoryOffset, open, 'directory');
	patches.push({at: directoryOffset, bytes: add(directory(torch.zip, crcs))});
	return {patches, crc32: joinedCrc(sums)};
}

function safetensorsFinish(
	source: Source,
	{safetensors}: SamplePlan & {container: 'safetensors'},
	storages: readonly Storage[],
): Finish {
	const {header} = safetensors;
	requireBytes(source, 0, header, 'header');
	const inOrder = [...storages].sort((one, other) => one.from - other.from);
	return {
		patches: patchesOf(storages),
		crc32: joinedCrc([{crc: crc32(header), bytes: header.length}, ...inOrder]),
	};
}

function requireBytes(source: Source, at: number, right: Buffer, what: string): void {
	if (!source.read(at, right.length).equals(right)) throw new DamagedFile(`its ${what} is not as it is written`);
}

const ROWS = 8;

/** Some rows of each state, spread over the sample: enough to tell layers apart, and the sides of the norm. */
export function someRows(source: Source, form: Form, plan: SamplePlan, tokens: number, hiddenSize: number): States {
	const rows = spread(
		Array.from({length: tokens}, (_, row) => row),
		ROWS,
	);
	const states: Partial<Record<StateName, Buffer>> = {};
	for (const [at, {name, part}] of storagesOf(form).entries()) {
		if (part.kind !== 'states') continue;
		const columns = part.within ?? part.columns;
		const from = dataOffset(plan, at, name);
		const bytes = hiddenSize * 2;
		for (const [column, state] of columns.entries()) {
			const places = rows.map(row => from + (row * columns.length + column) * bytes);
			states[state] = Buffer.concat(places.map(place => source.read(place, bytes)));
		}
	}
	return states;
}
