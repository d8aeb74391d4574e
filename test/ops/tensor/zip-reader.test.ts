import {crc32, deflateRawSync} from 'node:zlib';
import {describe, expect, test} from 'vitest';
import {openContainer} from '../../../src/ops/tensor/container.ts';
import {DamagedFile, UnsupportedFile} from '../../../src/ops/tensor/damage.ts';
import {pickle, type Tree, tensor} from '../../../src/ops/tensor/pickle.ts';
import {scanRange} from '../../../src/ops/tensor/scan.ts';
import {bufferSource, type Source} from '../../../src/ops/tensor/source.ts';
import {planTorchFile, torchFile} from '../../../src/ops/tensor/torch-file.ts';
import {readTorchFile} from '../../../src/ops/tensor/torch-reader.ts';
import {descriptor, directory, localHeader, planZip} from '../../../src/ops/tensor/zip.ts';
import {readZip} from '../../../src/ops/tensor/zip-reader.ts';

/** A zip as torch lays it out, of any entries. */
function zip(entries: readonly (readonly [name: string, data: Buffer])[], alignment?: number, sums = true): Buffer {
	const plan = planZip(
		entries.map(([name, data]) => ({name, bytes: data.length})),
		alignment,
	);
	const crcs = entries.map(([, data]) => (sums ? crc32(data) : 0));
	const parts = plan.items.flatMap((item, at) => [
		localHeader(item),
		entries[at]?.[1] ?? Buffer.alloc(0),
		descriptor(item, crcs[at] ?? 0),
	]);
	return Buffer.concat([...parts, directory(plan, crcs)]);
}

const TREE: Tree = {kind: 'dict', entries: [['x', tensor('BF16', [4, 8])]]};
const DATA = Buffer.from(Uint16Array.from({length: 32}, (_, at) => 0x3f80 + at).buffer);
const small = Buffer.concat(torchFile(planTorchFile('a', TREE), [DATA]));

/** Everything that can be said without looking at values: damage, or the notes. */
function judge(bytes: Buffer): string[] | 'damaged' {
	try {
		const {ranges, notes} = openContainer(bufferSource(bytes), 'a.pt');
		const wrong = ranges.some(range => range.crc !== null && scanRange(range, null, () => true).crc !== range.crc);
		return wrong ? 'damaged' : [...notes];
	} catch (error) {
		if (error instanceof DamagedFile) return 'damaged';
		throw error;
	}
}

describe('a file of torch.save', () => {
	test('is as written', () => {
		expect(judge(small)).toEqual([]);
	});

	test('no single bit of it can change unseen', () => {
		const unseen: number[] = [];
		for (let bit = 0; bit < small.length * 8; bit++) {
			const bytes = Buffer.from(small);
			bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
			if (judge(bytes).length === 0) unseen.push(bit);
		}
		expect(unseen).toEqual([]);
	});

	test('two checksums of one entry that disagree are seen without reading its data', () => {
		const bytes = Buffer.from(small);
		const central = bytes.lastIndexOf('a/data/0', undefined, 'latin1') - 46;
		bytes[central + 16] = (bytes[central + 16] ?? 0) ^ 1;
		expect(() => openContainer(bufferSource(bytes), 'a.pt')).toThrow('two checksums of a/data/0 disagree');
	});

	test('cannot be cut or grow anywhere', () => {
		for (let length = 0; length < small.length; length++) expect(judge(small.subarray(0, length))).toBe('damaged');
		expect(judge(Buffer.concat([small, Buffer.from('\0')]))).toBe('damaged');
	});
});

describe('entries of torch 1.13 to 2.x', () => {
	const {bytes: text} = pickle(TREE);
	const extras: readonly (readonly [string, Buffer])[] = [
		['a/.format_version', Buffer.from('1')],
		['a/.storage_alignment', Buffer.from('64')],
		['a/byteorder', Buffer.from('little')],
	];
	const rest: readonly (readonly [string, Buffer])[] = [
		['a/data/0', DATA],
		['a/version', Buffer.from('3\n')],
		['a/.data/serialization_id', Buffer.from('0'.repeat(40))],
	];

	test.each(Array.from({length: 16}, (_, at) => at))('subset %i of the later entries', subset => {
		const kept = extras.filter((_, at) => subset & (1 << at));
		const entries = [['a/data.pkl', text] as const, ...kept, ...(subset & 8 ? rest : rest.slice(0, 2))];
		const source = bufferSource(zip(entries));
		expect(judge(zip(entries))).toEqual([]);
		expect(readTorchFile(source).zip.entries.map(({name}) => name)).toEqual(entries.map(([name]) => name));
	});

	test('another alignment is taken from its entry', () => {
		const entries = [['a/data.pkl', text], ['a/.storage_alignment', Buffer.from('4096')], ...rest] as const;
		expect(judge(zip(entries, 4096))).toEqual([]);
		expect(judge(zip(entries))).toEqual(['metadata is not as torch.save writes it']);
	});

	test('big-endian bytes are refused, not misread', () => {
		const entries = [['a/data.pkl', text], ['a/byteorder', Buffer.from('big')], ...rest] as const;
		expect(() => openContainer(bufferSource(zip(entries)), 'a.pt')).toThrow('not in little-endian order');
	});

	test('TorchScript is named', () => {
		const entries = [['a/data.pkl', text], ['a/constants.pkl', text], ...rest] as const;
		expect(() => openContainer(bufferSource(zip(entries)), 'a.pt')).toThrow(UnsupportedFile);
	});

	test('without checksums data can change, and that is said', () => {
		const bytes = zip([['a/data.pkl', text], ...rest], 64, false);
		expect(openContainer(bufferSource(bytes), 'a.pt').checksums).toBe(false);
		expect(openContainer(bufferSource(small), 'a.pt').checksums).toBe(true);
	});
});

describe('beyond 4 GiB', () => {
	/** A file of which only the frames are in memory; its data is zeros. */
	function sparse(tree: Tree): Source {
		const {bytes: text, storages} = pickle(tree);
		const items = [
			{name: 'big/data.pkl', bytes: text.length},
			...storages.map(({bytes}, at) => ({name: `big/data/${at}`, bytes})),
			{name: 'big/version', bytes: 2},
		];
		const plan = planZip(items);
		const parts: [number, Buffer][] = [];
		const crcs = items.map((_, at) => (at === 0 ? crc32(text) : at === items.length - 1 ? crc32('3\n') : 7));
		for (const [at, item] of plan.items.entries()) {
			parts.push(
				[item.headerOffset, localHeader(item)],
				[item.dataOffset + item.bytes, descriptor(item, crcs[at] ?? 0)],
			);
			if (at === 0) parts.push([item.dataOffset, text]);
			if (at === items.length - 1) parts.push([item.dataOffset, Buffer.from('3\n')]);
		}
		parts.push([plan.directoryOffset, directory(plan, crcs)]);
		const readInto = (target: Uint8Array, offset: number): void => {
			target.fill(0);
			for (const [from, bytes] of parts) {
				const start = Math.max(from, offset);
				const end = Math.min(from + bytes.length, offset + target.length);
				if (start < end) target.set(bytes.subarray(start - from, end - from), start - offset);
			}
		};
		return {
			size: plan.bytes,
			readInto,
			read(offset, length) {
				const bytes = Buffer.alloc(length);
				readInto(bytes, offset);
				return bytes;
			},
		};
	}

	test('sizes and offsets of 64 bits are as written', () => {
		const wide = tensor('BF16', [2_200_000_000]);
		const source = sparse({kind: 'list', items: [wide, tensor('BF16', [8]), wide, tensor('I64', [3])]});
		const {asWritten, entries} = readZip(source);
		expect(asWritten).toBe(true);
		expect(entries.map(({bytes}) => bytes).slice(1, 5)).toEqual([4_400_000_000, 16, 4_400_000_000, 24]);
		expect(entries[4]?.dataOffset).toBeGreaterThan(8_800_000_000);
		expect(openContainer(source, 'big.pt').tensors.map(({shape}) => shape)).toEqual([
			[2_200_000_000],
			[8],
			[2_200_000_000],
			[3],
		]);
	});
});

test('an entry that inflates to more than it says is stopped there', () => {
	const {bytes: text} = pickle(TREE);
	const bomb = deflateRawSync(Buffer.alloc(1_000_000));
	const packed = zip([
		['a/data.pkl', text],
		['a/data/0', bomb],
		['a/version', Buffer.from('3\n')],
	]);
	const plan = planZip([
		{name: 'a/data.pkl', bytes: text.length},
		{name: 'a/data/0', bytes: bomb.length},
		{name: 'a/version', bytes: 2},
	]);
	const item = plan.items[1];
	if (!item) throw new Error('an entry');
	const at = packed.indexOf('PK\x01\x02', plan.directoryOffset + 46, 'latin1');
	const central = packed.indexOf('a/data/0', at) - 46;
	packed.writeUInt16LE(8, item.headerOffset + 8);
	packed.writeUInt16LE(8, central + 10);
	packed.writeUInt32LE(64, central + 24);
	packed.writeUInt32LE(64, item.dataOffset + item.bytes + 12);
	const container = openContainer(bufferSource(packed), 'a.pt');
	const range = container.ranges.find(({name}) => name === 'a/data/0');
	expect(() => range?.open()).toThrow('does not inflate to its size');
});
