import {BLOCK_BYTES, SECTOR_BYTES} from './blocks.ts';
import {type FilePort, isMisplaced, patchAll} from './file-port.ts';
import {liesAs} from './rows-memory.ts';

/** A file in pieces, made as they are asked for; gives back the CRC-32 of all of them. */
export type Pieces = Generator<Buffer, number>;

/** With less the calls cost more than the copy that they spare. */
const LEAST_IN_PLACE = 64 * 1024;

/**
 * Writes a file past the page cache, `direct` being the same file as `fd` once more: whole sectors from memory that begins on
 * a page. What lies in memory as it will lie in the file is written from where it is; all else goes through two blocks, one
 * written while the other is filled. What is left over at the end goes the usual way.
 */
export async function writeDirect(
	files: FilePort,
	{fd, direct}: {readonly fd: number; readonly direct: number},
	blocks: readonly [Buffer, Buffer],
	pieces: Pieces,
): Promise<number> {
	let [block, other] = blocks;
	let filled = 0;
	let written = 0;
	let under = Promise.resolve();
	async function write(bytes: Buffer): Promise<void> {
		await under;
		under = writeSectors(files, fd, direct, bytes, written);
		// Awaited a turn later: until then its failure is nobody's.
		under.catch(() => {});
		written += bytes.length;
	}
	async function flush(): Promise<void> {
		await write(block.subarray(0, filled));
		filled = 0;
		[block, other] = [other, block];
	}
	try {
		for (;;) {
			const next = pieces.next();
			if (next.done) {
				await under;
				patchAll(files, fd, block.subarray(0, filled), written);
				return next.value;
			}
			for (let rest = next.value; rest.length > 0; ) {
				const place = written + filled;
				const inPlace = rest.length >= LEAST_IN_PLACE && liesAs(rest, place);
				const toSector = (SECTOR_BYTES - (place % SECTOR_BYTES)) % SECTOR_BYTES;
				let took: number;
				if (inPlace && toSector === 0) {
					if (filled > 0) await flush();
					took = Math.min(BLOCK_BYTES, rest.length - (rest.length % SECTOR_BYTES));
					await write(rest.subarray(0, took));
				} else {
					took = rest.copy(block, filled, 0, inPlace ? toSector : rest.length);
					filled += took;
					if (filled === block.length) await flush();
				}
				rest = rest.subarray(took);
			}
		}
	} finally {
		// Nothing may be under way when the file is closed.
		await under.catch(() => {});
	}
}

/** A short write, or a disk with larger sectors than most, leaves the rest to the page cache. */
async function writeSectors(files: FilePort, fd: number, direct: number, bytes: Buffer, at: number): Promise<void> {
	let done = 0;
	try {
		while (done < bytes.length && done % SECTOR_BYTES === 0) {
			const got = await files.fill(direct, bytes.subarray(done), at + done);
			if (got <= 0) throw new Error('a write took no bytes');
			done += got;
		}
	} catch (error) {
		if (!isMisplaced(error)) throw error;
	}
	if (done < bytes.length) patchAll(files, fd, bytes.subarray(done), at + done);
}
