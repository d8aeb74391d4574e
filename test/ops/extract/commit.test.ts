import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, beforeEach, describe, expect, it} from 'vitest';
import {writeBeside} from '../../../src/ops/extract/commit.ts';
import type {Pieces} from '../../../src/ops/extract/direct-write.ts';
import {type FilePort, systemFiles} from '../../../src/ops/extract/file-port.ts';
import {giveBack, takeRows} from '../../../src/ops/extract/rows-memory.ts';
import {crc32} from '../../../src/ops/tensor/crc.ts';

const folder = mkdtempSync(join(tmpdir(), 'relight-commit-'));
afterAll(() => rmSync(folder, {recursive: true}));

const MIB = 1024 * 1024;
/** Headers of some bytes between data of many, as a sample's file has them; no border lies on a page. */
const PIECES = [64, 3 * MIB, 52, 17, 2 * MIB + 4_095, 9, MIB - 1, 700].map((bytes, at) =>
	Buffer.from(Uint8Array.from({length: bytes}, (_, byte) => byte * 31 + (byte >> 8) + at)),
);
const WHOLE = Buffer.concat(PIECES);

function* pieces(all: readonly Buffer[] = PIECES): Pieces {
	let sum = 0;
	for (const piece of all) {
		sum = crc32(piece, sum);
		yield piece;
	}
	return sum;
}

type Write = {readonly direct: boolean; readonly bytes: number; readonly at: number | undefined};

/** The real file system; `meddle` may take the place of a write past the page cache. */
function watched(meddle: (fd: number, bytes: Buffer, at: number) => Promise<number> | null = () => null) {
	const writes: Write[] = [];
	const open = new Set<number>();
	const direct = new Set<number>();
	const files: FilePort = {
		...systemFiles,
		create(path) {
			const fd = systemFiles.create(path);
			open.add(fd);
			return fd;
		},
		direct(path) {
			// Where the tests' own folder has no such thing, any second descriptor shows the same.
			const fd = systemFiles.direct(path) ?? systemFiles.edit(path);
			direct.add(fd);
			open.add(fd);
			return fd;
		},
		fill(fd, bytes, at) {
			writes.push({direct: direct.has(fd), bytes: bytes.length, at});
			return (direct.has(fd) ? meddle(fd, bytes, at ?? 0) : null) ?? systemFiles.fill(fd, bytes, at);
		},
		close(fd) {
			open.delete(fd);
			systemFiles.close(fd);
		},
	};
	return {files, writes, open};
}

const failing = (code: string) => Promise.reject(Object.assign(new Error(`${code}: as arranged`), {code}));
const path = join(folder, 'sample.ckpt');
const store = (files: FilePort, all: readonly Buffer[] = PIECES) =>
	writeBeside(
		files,
		path,
		all.reduce((sum, piece) => sum + piece.length, 0),
		pieces(all),
	);

beforeEach(() => {
	for (const name of readdirSync(folder)) rmSync(join(folder, name));
});

describe('a large file', () => {
	it('passes the page cache in whole blocks, and is the same bytes', async () => {
		const {files, writes, open} = watched();
		const {temporary, crc32: sum, mark} = await store(files);
		expect(readFileSync(temporary).equals(WHOLE)).toBe(true);
		expect([sum, mark.bytes]).toEqual([crc32(WHOLE), WHOLE.length]);
		expect(writes).toEqual(Array.from({length: 6}, (_, at) => ({direct: true, bytes: MIB, at: at * MIB})));
		expect([...open]).toEqual([]);
	});

	it.each([
		['is taken from where it lies as in the file', 0, true],
		['is copied where it lies otherwise', 64, false],
	])('%s', async (_, off, inPlace) => {
		const HEAD = Buffer.alloc(192, 7);
		const {rows} = takeRows(3 * MIB + 5_000, HEAD.length + off);
		for (let at = 0; at < rows.length; at++) rows[at] = at * 13 + (at >> 9);
		const all = [HEAD, rows, PIECES[4] ?? HEAD, Buffer.alloc(100, 9)];
		const {files, open} = watched();
		const own: (readonly [at: number, bytes: number])[] = [];
		const fill: FilePort['fill'] = (fd, bytes, at) => {
			if (bytes.buffer === rows.buffer) own.push([at ?? -1, bytes.length]);
			return files.fill(fd, bytes, at);
		};
		const {temporary, crc32: sum} = await store({...files, fill}, all);
		expect(readFileSync(temporary).equals(Buffer.concat(all))).toBe(true);
		expect(sum).toBe(crc32(Buffer.concat(all)));
		expect(own).toEqual(
			inPlace
				? [
						[4_096, MIB],
						[4_096 + MIB, MIB],
						[4_096 + 2 * MIB, MIB],
					]
				: [],
		);
		expect([...open]).toEqual([]);
		giveBack(rows);
	});

	it('is written the usual way where the file system has no such writes', async () => {
		const {files, writes} = watched();
		const {temporary, crc32: sum} = await store({...files, direct: () => null});
		expect(readFileSync(temporary).equals(WHOLE)).toBe(true);
		expect(sum).toBe(crc32(WHOLE));
		expect(writes.reduce((all, {bytes}) => all + bytes, 0)).toBe(WHOLE.length);
		expect(Math.max(...writes.map(({bytes}) => bytes))).toBe(MIB / 2);
	});

	it.each([
		['refuses them', () => failing('EINVAL')],
		[
			'takes a sector of a block',
			(fd: number, bytes: Buffer, at: number) => systemFiles.fill(fd, bytes.subarray(0, 4_096), at),
		],
		[
			'takes some bytes of a block',
			(fd: number, bytes: Buffer, at: number) =>
				systemFiles.patch(fd, bytes.subarray(0, 512), at) > 0 ? Promise.resolve(512) : null,
		],
	])('comes out right where the disk %s', async (_, meddle) => {
		const {files, open} = watched(meddle);
		const {temporary} = await store(files);
		expect(readFileSync(temporary).equals(WHOLE)).toBe(true);
		expect([...open]).toEqual([]);
	});

	it('gives its room back on a full disk, and stays for a look after other trouble', async () => {
		const full = watched((_, __, at) => (at === 2 * MIB ? failing('ENOSPC') : null));
		await expect(store(full.files)).rejects.toThrow('ENOSPC: as arranged');
		expect([readdirSync(folder), [...full.open]]).toEqual([[], []]);
		const broken = watched((_, __, at) => (at === 2 * MIB ? failing('EIO') : null));
		await expect(store(broken.files)).rejects.toThrow('EIO: as arranged');
		expect([readdirSync(folder).length, [...broken.open]]).toEqual([1, []]);
	});

	it('leaves nothing open when its pieces throw', async () => {
		const {files, open} = watched();
		function* bad(): Pieces {
			yield* PIECES.slice(0, 4);
			throw new Error('checksum is wrong');
		}
		await expect(writeBeside(files, path, WHOLE.length, bad())).rejects.toThrow('checksum is wrong');
		expect([...open]).toEqual([]);
	});
});

it('a small file goes through the page cache', async () => {
	const {files, writes} = watched();
	const {temporary} = await store(files, PIECES.slice(5));
	expect(readFileSync(temporary).equals(Buffer.concat(PIECES.slice(5)))).toBe(true);
	expect(writes.some(({direct}) => direct)).toBe(false);
});
