import type {Dtype} from './dtype.ts';

/**
 * How a type shows NaN and infinity: all these bits set, in lanes of so many bits. They are the exponent's, but in
 * float8_e4m3fn, which has no infinity and for NaN the fraction's, too.
 */
export type FloatLanes = {readonly bits: 8 | 16 | 32 | 64; readonly exponent: number};

/** Null for types that are always finite. */
export function lanesOf(dtype: Dtype): FloatLanes | null {
	switch (dtype) {
		case 'F8_E4M3':
			return {bits: 8, exponent: 0x7f};
		case 'F8_E5M2':
			return {bits: 8, exponent: 0x7c};
		case 'BF16':
			return {bits: 16, exponent: 0x7f80};
		case 'F16':
			return {bits: 16, exponent: 0x7c00};
		case 'F32':
		case 'C64':
			return {bits: 32, exponent: 0x7f800000};
		case 'F64':
		case 'C128':
			// The upper half of each lane.
			return {bits: 64, exponent: 0x7ff00000};
		default:
			return null;
	}
}

/** Memory to read into, and a test of a part of it. */
export type FloatTest = {
	readonly memory: ArrayBuffer;
	/** It begins on a page: of all memory that a program can ask of Node only that of WebAssembly does. */
	readonly onPage: boolean;
	/** Whether a lane of [from, to) is not finite; both multiples of 64. */
	any(from: number, to: number, lanes: FloatLanes): boolean;
};

/** `bytes` of memory, with the test in SIMD where the engine has it (all of x64 and arm64), else in a loop. */
export function floatTest(bytes: number, simd = true): FloatTest {
	const {WebAssembly} = globalThis as unknown as {WebAssembly?: WasmEngine};
	const code = program(Math.ceil(bytes / 65_536));
	const exports = simd && WebAssembly?.validate(code) ? instanceOf(code, WebAssembly) : null;
	if (!exports) {
		const memory = new ArrayBuffer(bytes);
		return {memory, onPage: false, any: (from, to, lanes) => firstNonFinite(memory, from, to, lanes) !== null};
	}
	const {memory, any8, any16, any32, any64} = exports;
	const tests = {8: any8, 16: any16, 32: any32, 64: any64};
	return {
		memory: memory.buffer,
		onPage: true,
		any: (from, to, {bits, exponent}) => tests[bits](from, to, exponent) !== 0,
	};
}

/** null where its memory cannot be had: the engine reserves gigabytes of addresses for each, which a limit may forbid. */
function instanceOf(code: Uint8Array, {Instance, Module}: WasmEngine): Exports | null {
	try {
		return new Instance(new Module(code)).exports;
	} catch {
		return null;
	}
}

/** Byte of the first lane in [from, to) that is not finite and that `counts`. */
export function firstNonFinite(
	memory: ArrayBuffer,
	from: number,
	to: number,
	{bits, exponent}: FloatLanes,
	counts: (byte: number) => boolean = () => true,
): number | null {
	const size = bits / 8;
	if (bits <= 16) {
		const View = bits === 8 ? Uint8Array : Uint16Array;
		const view = new View(memory, from, Math.floor((to - from) / size));
		for (let at = 0; at < view.length; at++)
			if (((view[at] ?? 0) & exponent) === exponent && counts(from + at * size)) return from + at * size;
		return null;
	}
	const view = new Uint32Array(memory, from, Math.floor((to - from) / 4));
	const step = size / 4;
	for (let at = step - 1; at < view.length; at += step) {
		const byte = from + (at - step + 1) * 4;
		if (((view[at] ?? 0) & exponent) === exponent && counts(byte)) return byte;
	}
	return null;
}

type Test = (from: number, to: number, exponent: number) => number;
type WasmEngine = {
	validate(code: Uint8Array): boolean;
	Module: new (code: Uint8Array) => object;
	Instance: new (module: object) => {readonly exports: Exports};
};
type Exports = {memory: {buffer: ArrayBuffer}; any8: Test; any16: Test; any32: Test; any64: Test};

const [I32, V128] = [0x7f, 0x7b];
const SIMD = 0xfd;
/** Of unsigned lanes of 32 bits. */
const MAX32 = [SIMD, 0xb9, 0x01];
const get = (local: number) => [0x20, local];
const set = (local: number) => [0x21, local];
const text = (value: string) => [value.length, ...Buffer.from(value)];
const sized = (bytes: readonly number[]): number[] => [...leb(bytes.length), ...bytes];
const section = (id: number, items: readonly (readonly number[])[]) => [id, ...sized([items.length, ...items.flat()])];
const leb = (value: number): number[] => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >> 7)]);

/**
 * Four functions (from, to, exponent) → whether any lane has all bits of the exponent set, for lanes of 8, 16, 32 and 64 bits.
 * 64 bytes a turn: most = max(most, word & mask), which ends at mask exactly if one had all its bits. The maximum of four
 * words is taken first: each would else wait for the one before it.
 */
function program(pages: number): Uint8Array {
	const signature = [0x60, 3, I32, I32, I32, 1, I32];
	const exported = (name: string, kind: number, index: number) => [...text(name), kind, index];
	return Uint8Array.from([
		...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
		...section(1, [signature]),
		...section(3, [[0], [0], [0], [0]]),
		...section(5, [[0, ...leb(pages)]]),
		...section(7, [
			exported('memory', 2, 0),
			exported('any8', 0, 0),
			exported('any16', 0, 1),
			exported('any32', 0, 2),
			exported('any64', 0, 3),
		]),
		...section(10, [
			body([SIMD, 0x0f], [SIMD, 0x79], [SIMD, 0x23]),
			body([SIMD, 0x10], [SIMD, 0x99, 0x01], [SIMD, 0x2d]),
			body([SIMD, 0x11], MAX32, [SIMD, 0x37]),
			// The mask is widened to i64 and moved to the upper half first; the lower halves are 0 behind it.
			body([0xad, 0x42, 32, 0x86, SIMD, 0x12], MAX32, [SIMD, 0xd6, 0x01]),
		]),
	]);
}

function body(splat: readonly number[], max: readonly number[], equal: readonly number[]): number[] {
	const [from, to, exponent, mask, most] = [0, 1, 2, 3, 4];
	const word = (offset: number) => [
		...[...get(from), SIMD, 0x00, 0, offset], // v128.load
		...[...get(mask), SIMD, 0x4e], // v128.and
	];
	return sized([
		...[1, 2, V128],
		...[...get(exponent), ...splat, ...set(mask)],
		...[0x02, 0x40], // block
		...[...get(from), ...get(to), 0x4f, 0x0d, 0], // leave when from >= to
		...[0x03, 0x40], // loop
		...[...word(0), ...word(16), ...max, ...word(32), ...word(48), ...max, ...max],
		...[...get(most), ...max, ...set(most)],
		...[...get(from), 0x41, 0xc0, 0x00, 0x6a, 0x22, from], // from += 64
		...[...get(to), 0x49, 0x0d, 0], // again while from < to
		...[0x0b, 0x0b],
		...[...get(most), ...get(mask), ...equal, SIMD, 0x53], // v128.any_true
		0x0b,
	]);
}
