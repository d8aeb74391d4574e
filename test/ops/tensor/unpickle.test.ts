import {describe, expect, test} from 'vitest';
import {DamagedFile} from '../../../src/ops/tensor/damage.ts';
import {tensorsOf} from '../../../src/ops/tensor/torch-reader.ts';
import {unpickle, unpickled} from '../../../src/ops/tensor/unpickle.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const word = (text: string): string => `X${String.fromCharCode(text.length)}\0\0\0${text}`;

describe('bounds', () => {
	test.each<[string, string]>([
		['nested too deep', `\x80\x02${']'.repeat(200_001)}`],
		['too many values', `\x80\x02]${`(${']'.repeat(1_000)}e`.repeat(501)}.`],
		['remembers too many values', `\x80\x02K\x01${'\x94'.repeat(500_001)}.`],
		['too many operations', `\x80\x02](${'K\x01K\x01e('.repeat(500_001)}e.`],
		['over 16 MiB', 'x'.repeat(16 * 1024 * 1024 + 1)],
		['protocol 6 is refused', '\x80\x06N.'],
		['protocol 1 is refused', '\x80\x01N.'],
		['gives state to no dict', '\x80\x02]Nb.'],
		['sets items of no dict', '\x80\x02}(Nu.'],
		['appends to no list', '\x80\x02}Na.'],
		['ends early', '\x80\x04\x95\xff\0\0\0\0\0\0\0N.'],
		['over 64 bits', '\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01.'],
		['leaves values behind', '\x80\x02NN.'],
		['names torch.hub load, which is refused', '\x80\x02ctorch.hub\nload\n.'],
		['names collections Counter, which is refused', '\x80\x02ccollections\nCounter\n.'],
		['calls torch FloatStorage, which is refused', '\x80\x02ctorch\nFloatStorage\n)R.'],
		['calls a value, which is refused', '\x80\x02K\x01)R.'],
	])('%s', (why, text) => {
		expect(() => unpickle(bytes(text))).toThrow(DamagedFile);
		expect(() => unpickle(bytes(text))).toThrow(why);
	});
});

describe('tensors with a type beside untyped bytes', () => {
	const made = (dtype: string, count: number, offset = 0): string =>
		`\x80\x02ctorch._utils\n_rebuild_tensor_v3\n((${word('storage')}ctorch.storage\nUntypedStorage\n${word('0')}${word('cpu')}K\x18tQ` +
		`K${String.fromCharCode(offset)}K${String.fromCharCode(count)}\x85K\x01\x85\x89ccollections\nOrderedDict\n)Rctorch\n${dtype}\ntR.`;

	test.each([
		['float8_e4m3fn', 'F8_E4M3', 24],
		['uint16', 'U16', 12],
		['uint64', 'U64', 3],
	])('torch.%s', (dtype, name, count) => {
		expect(tensorsOf(unpickle(bytes(made(dtype, count))))).toEqual([
			[
				'',
				{
					kind: 'stored tensor',
					dtype: name,
					key: '0',
					storageBytes: 24,
					location: 'cpu',
					offset: 0,
					shape: [count],
					stride: [1],
				},
			],
		]);
		expect(() => unpickle(bytes(made(dtype, count, 1)))).toThrow('beyond its storage');
	});

	test('a type that nobody knows is refused', () => {
		expect(() => unpickle(bytes(made('float4', 1)))).toThrow('names torch float4, which is refused');
	});
});

test('numbers keep their signs and sizes', () => {
	const text = '\x80\x02](K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x01\xff\x8a\x05\0\0\0\0\x01\x8a\0G?\xf8\0\0\0\0\0\0e.';
	expect(unpickle(bytes(text))).toEqual({kind: 'list', items: [255, 65_535, -1, -1, 4_294_967_296, 0, 1.5]});
});

test('the protocol is told', () => {
	expect(unpickled(bytes('\x80\x05N.'))).toEqual({value: null, protocol: 5});
});
