import {type FloatTest, floatTest} from '../tensor/non-finite.ts';

/** The states of a few samples. */
const MOST_SPARE = 32;
/** What the test for NaN reads at once: up to so much behind the rows. */
const LANES = 64;

const PAGE_BYTES = 4096;

/** Memory that was read into before, smallest first: fresh memory costs more than reading into it. */
const spare: FloatTest[] = [];
const rooms = new WeakMap<Buffer, FloatTest>();
const onPage = new WeakSet<ArrayBufferLike>();

export type RowsMemory = {readonly rows: Buffer; readonly test: FloatTest};

/**
 * Memory for so many bytes of rows, in which they can be tested where they lie. `place` is where they will lie in a file: as
 * far behind the beginning of a page they lie here, so that a disk can take them from where they are.
 */
export function takeRows(bytes: number, place = 0): RowsMemory {
	const from = place % LANES === 0 ? place % PAGE_BYTES : 0;
	const need = from + bytes + LANES;
	const at = spare.findIndex(({memory}) => memory.byteLength >= need);
	const [test = floatTest(Math.ceil(need * 1.25))] = at < 0 ? [] : spare.splice(at, 1);
	if (test.onPage) onPage.add(test.memory);
	const rows = Buffer.from(test.memory, from, bytes);
	new Uint8Array(test.memory, from + bytes, LANES).fill(0);
	rooms.set(rows, test);
	return {rows, test};
}

/** Whether these bytes lie in memory as far behind the beginning of a page as `place` does in a file. */
export const liesAs = (bytes: Buffer, place: number): boolean =>
	onPage.has(bytes.buffer) && (place - bytes.byteOffset) % PAGE_BYTES === 0;

/** To be used again for other rows: only once nobody reads these any more. */
export function giveBack(rows: Buffer): void {
	const room = rooms.get(rows);
	rooms.delete(rows);
	if (!room) return;
	const at = spare.findIndex(({memory}) => memory.byteLength >= room.memory.byteLength);
	spare.splice(at < 0 ? spare.length : at, 0, room);
	if (spare.length > MOST_SPARE) spare.shift();
}
