import {closeSync, openSync} from 'node:fs';
import {type Container, openContainer, type PlacedTensor} from '../tensor/container.ts';
import {crc32} from '../tensor/crc.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {ITEM_BYTES} from '../tensor/dtype.ts';
import {fileSource, windowed} from '../tensor/source.ts';
import {inRowOrder} from '../tensor/torch-reader.ts';
import {type Form, leavesOf, type StatesPart} from './forms.ts';
import type {StateName, States} from './states.ts';

/** The states in a sample's file, each once. Checks the checksums of what it reads; throws DamagedFile or the read's error. */
export function readStates(path: string, form: Form, hiddenSize: number): States {
	const fd = openSync(path, 'r');
	try {
		return statesOf(openContainer(windowed(fileSource(fd)), path), form, hiddenSize);
	} finally {
		closeSync(fd);
	}
}

export function statesOf({tensors}: Container, form: Form, hiddenSize: number): States {
	const storages = new Map<string, Buffer>();
	const read = ({range}: PlacedTensor): Buffer => {
		const known = storages.get(range.name);
		if (known) return known;
		const bytes = range.open().read(0, range.bytes);
		if (range.crc !== null && crc32(bytes) !== range.crc)
			throw new DamagedFile(`checksum of ${range.name.slice(range.name.indexOf('/') + 1)} is wrong`, 'checksum');
		storages.set(range.name, bytes);
		return bytes;
	};
	const states: Partial<Record<StateName, Buffer>> = {};
	for (const {name, part} of leavesOf(form)) {
		if (part.kind !== 'states') continue;
		const tensor = tensors.find(each => each.name === name);
		if (!tensor) throw new DamagedFile(`it holds no ${name}`);
		const rows = inRowOrder(read(tensor), ITEM_BYTES[tensor.dtype], tensor.offset, tensor.shape, tensor.stride);
		for (const column of part.columns) states[column] ??= columnOf(rows, part, column, hiddenSize);
	}
	return states;
}

/** One state [T, H] out of rows [T, k·H]. */
function columnOf(rows: Buffer, {columns}: StatesPart, column: StateName, hiddenSize: number): Buffer {
	if (columns.length === 1) return rows;
	const bytes = hiddenSize * 2;
	const made = Buffer.allocUnsafe(rows.length / columns.length);
	let to = 0;
	for (let from = columns.indexOf(column) * bytes; from < rows.length; from += columns.length * bytes)
		to += rows.copy(made, to, from, from + bytes);
	return made;
}
