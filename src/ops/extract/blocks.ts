/** A megabyte: with less the calls cost, with more some kernels are several times slower. */
export const BLOCK_BYTES = 1024 * 1024;
/** What every disk that is common takes as the unit of a write past the page cache. */
export const SECTOR_BYTES = 4096;

const BLOCKS_AT_ONCE = 4;
const WASM_PAGE_BYTES = 65_536;

type WasmEngine = {Memory: new (size: {initial: number; maximum: number}) => {readonly buffer: ArrayBuffer}};

const spare: Buffer[] = [];

/**
 * Memory of BLOCK_BYTES that begins on a page, as a write past the page cache needs it: of all that a program can ask of
 * Node only the memory of WebAssembly does. null where that is switched off. Blocks are kept and handed out again.
 */
export function takeBlock(): Buffer | null {
	const {WebAssembly} = globalThis as unknown as {WebAssembly?: WasmEngine};
	if (spare.length === 0 && WebAssembly) {
		const pages = (BLOCKS_AT_ONCE * BLOCK_BYTES) / WASM_PAGE_BYTES;
		const {buffer} = new WebAssembly.Memory({initial: pages, maximum: pages});
		for (let at = 0; at < BLOCKS_AT_ONCE; at++) spare.push(Buffer.from(buffer, at * BLOCK_BYTES, BLOCK_BYTES));
	}
	return spare.pop() ?? null;
}

/** Only once nothing is being written from it any more. */
export const giveBlock = (block: Buffer): void => void spare.push(block);
