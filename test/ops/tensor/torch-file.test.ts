import {createHash} from 'node:crypto';
import {closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, describe, expect, test} from 'vitest';
import type {Dtype, StorageDtype} from '../../../src/ops/tensor/dtype.ts';
import {elements, type Tree, tensor} from '../../../src/ops/tensor/pickle.ts';
import {fileSource} from '../../../src/ops/tensor/source.ts';
import {expectedBytes, planTorchFile, torchFile} from '../../../src/ops/tensor/torch-file.ts';
import {readBareTensor, readTensor, readTorchFile, tensorsOf} from '../../../src/ops/tensor/torch-reader.ts';
import {unpickle} from '../../../src/ops/tensor/unpickle.ts';
import {planZip} from '../../../src/ops/tensor/zip.ts';
import {DamagedFile, endRecordPresent} from '../../../src/ops/tensor/zip-reader.ts';

const FIXTURES = 'test/fixtures/pt';

type Fixture = {
	readonly file: string;
	readonly verdict: string;
	readonly tensors?: readonly {key: string; dtype: Dtype; shape: readonly number[]; sha256: string}[];
};

const manifest: {fixtures: readonly Fixture[]} = JSON.parse(readFileSync(`${FIXTURES}/MANIFEST.json`, 'utf8'));
const zips = manifest.fixtures.filter(({file}) => /\.(pt|ckpt)$/.test(file));

function readAll(path: string) {
	const fd = openSync(path, 'r');
	try {
		const source = fileSource(fd);
		const file = readTorchFile(source);
		return tensorsOf(file.tree).map(([key, stored]) => {
			const {dtype, shape, data} = readTensor(source, file, stored);
			return {key, dtype, shape, sha256: createHash('sha256').update(data).digest('hex'), data};
		});
	} finally {
		closeSync(fd);
	}
}

const byKey = (one: {key: string}, other: {key: string}): number => one.key.localeCompare(other.key);

describe('files made with the real torch', () => {
	const good = zips.filter(({verdict}) =>
		['good', 'good-unverifiable', 'good-unusual', 'semantic-bad'].includes(verdict),
	);
	test.each(good)('$file gives the tensors that torch stored', ({file, tensors = []}) => {
		const read = readAll(`${FIXTURES}/${file}`).map(({data: _, ...rest}) => rest);
		expect(read.sort(byKey)).toEqual([...tensors].sort(byKey));
	});

	const bad = zips.filter(({verdict, file}) => /bad|malicious/.test(verdict) && !good.some(each => each.file === file));
	test.each(bad.filter(({file}) => file !== 'bad-no-crc-hole.ckpt'))('$file is refused', ({file}) => {
		expect(() => readAll(`${FIXTURES}/${file}`)).toThrow(DamagedFile);
	});
});

/** The pickle of a fixture made with Python's zipfile: the first entry, sizes in its header. */
function firstEntry(path: string): Buffer {
	const file = readFileSync(path);
	const start = 30 + file.readUInt16LE(26) + file.readUInt16LE(28);
	return file.subarray(start, start + file.readUInt32LE(18));
}

describe('pickles made to do harm', () => {
	const refused: Record<string, string> = {
		'evil-builtins-eval.pt': 'names __builtin__ eval, which is refused',
		'evil-stack-global.pt': 'names posix system, which is refused',
		'evil-legacy-inst.pt': 'opcode 0x69 is refused',
		'evil-huge-string.pt': 'ends early',
		'evil-negative-long.pt': 'a storage of no size',
		'evil-storage-key-path.pt': 'a storage of an unknown kind',
		'evil-stack-underflow.pt': 'an empty stack',
		'evil-trailing-pickle.pt': 'bytes after the end',
		'evil-overflow-shape.pt': 'over 53 bits',
	};
	test.each(Object.entries(refused))('%s is refused: %s', (name, why) => {
		expect(() => unpickle(firstEntry(`${FIXTURES}/${name}`))).toThrow(why);
	});

	const inert = ['evil-proto-key.pt', 'evil-memo-bomb.pt', 'evil-deep-nesting.pt', 'evil-self-reference.pt'];
	test.each(inert)('%s is read without harm and holds no tensor', name => {
		expect(tensorsOf(unpickle(firstEntry(`${FIXTURES}/${name}`)))).toEqual([]);
		expect(Object.prototype).not.toHaveProperty('polluted');
	});
});

type Shapes = ReadonlyMap<string, readonly [StorageDtype, readonly number[]]>;

describe('the writer', () => {
	const directory = mkdtempSync(join(tmpdir(), 'relight-tensor-'));
	afterAll(() => rmSync(directory, {recursive: true}));

	const trees: Record<string, (shapes: Shapes) => Tree> = {
		'good-specforge-bf16.ckpt': shapes => dict(shapes, ['input_ids', 'loss_mask', 'hidden_state', 'aux_hidden_state']),
		'good-specforge-fp32.ckpt': shapes => dict(shapes, ['input_ids', 'loss_mask', 'hidden_state', 'aux_hidden_state']),
		'good-speculators-tensor.pt': shapes => dict(shapes, ['input_ids', 'hidden_states', 'loss_mask']),
		'good-bare-tensor.pt': shapes => leaf(shapes, ''),
		'good-12-storages-sort-order.pt': shapes => ({
			kind: 'dict',
			entries: [['l', {kind: 'list', items: Array.from({length: 12}, (_, at) => leaf(shapes, `l[${at}]`))}]],
		}),
	};
	const leaf = (shapes: Shapes, key: string): Tree => tensor(...(shapes.get(key) ?? (['U8', []] as const)));
	const dict = (shapes: Shapes, keys: readonly string[]): Tree => ({
		kind: 'dict',
		entries: keys.map(key => [key, leaf(shapes, key)] as const),
	});

	test.each(Object.keys(trees))('makes %s byte for byte as torch did', name => {
		const path = `${FIXTURES}/${name}`;
		const read = readAll(path);
		const shapes = new Map(read.map(({key, dtype, shape}) => [key, [dtype as StorageDtype, shape] as const]));
		const tree = trees[name]?.(shapes) ?? tensor('U8', []);
		const root = name.slice(0, name.lastIndexOf('.'));
		const plan = planTorchFile(root, tree);
		const made = Buffer.concat(
			torchFile(
				plan,
				read.map(({data}) => data),
			),
		);
		expect(made.equals(readFileSync(path))).toBe(true);
		expect(expectedBytes(root, tree)).toBe(made.length);
	});

	test('a file cut anywhere has no end record, a whole one has', () => {
		const path = join(directory, 'cut.pt');
		const plan = planTorchFile('cut', tensor('BF16', [4, 8]));
		const whole = Buffer.concat(torchFile(plan, [Buffer.alloc(64, 1)]));
		const present = (bytes: number): boolean => {
			writeFileSync(path, whole);
			truncateSync(path, bytes);
			const fd = openSync(path, 'r');
			const answer = endRecordPresent(fd);
			closeSync(fd);
			return answer;
		};
		expect(present(whole.length)).toBe(true);
		expect([0, 1, 21, 64, whole.length - 22, whole.length - 1].map(present)).toEqual(Array(6).fill(false));
	});

	test('a bare tensor comes back as it was written', () => {
		const path = join(directory, 'final.pt');
		const data = Buffer.from(Uint16Array.from({length: 24}, (_, at) => 0x3f80 + at).buffer);
		writeFileSync(path, Buffer.concat(torchFile(planTorchFile('final', tensor('BF16', [3, 8])), [data])));
		expect(readBareTensor(path)).toEqual({dtype: 'BF16', shape: [3, 8], data});
	});

	test('sizes beyond 4 GiB stay exact', () => {
		const bytes = 2_200_000_000 * 2;
		const plan = planZip([
			{name: 'big/data.pkl', bytes: 149},
			{name: 'big/data/0', bytes},
			{name: 'big/version', bytes: 2},
		]);
		const [, data, version] = plan.items;
		expect(data?.end).toBe((data?.dataOffset ?? 0) + bytes + 24);
		expect(version?.headerOffset).toBe(data?.end);
		expect((version?.dataOffset ?? 1) % 64).toBe(0);
		expect(elements([2_200_000_000])).toBe(2_200_000_000);
	});
});
