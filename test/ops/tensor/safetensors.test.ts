import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import {DamagedFile} from '../../../src/ops/tensor/damage.ts';
import {planSafetensors, readSafetensors} from '../../../src/ops/tensor/safetensors.ts';
import {bufferSource} from '../../../src/ops/tensor/source.ts';

const FIXTURES = 'test/fixtures/pt';

type Fixture = {file: string; tensors: {key: string; dtype: string; shape: number[]; sha256: string}[]};

const {fixtures}: {fixtures: Fixture[]} = JSON.parse(readFileSync(`${FIXTURES}/MANIFEST.json`, 'utf8'));
const byKey = (one: {key: string}, other: {key: string}): number => (one.key < other.key ? -1 : 1);

const file = (header: string, data = Buffer.alloc(0), length = Buffer.byteLength(header)): Buffer => {
	const size = Buffer.alloc(8);
	size.writeBigUInt64LE(BigInt(length));
	return Buffer.concat([size, Buffer.from(header), data]);
};
const read = (bytes: Buffer) => readSafetensors(bufferSource(bytes));

describe('the reader', () => {
	const good = fixtures.filter(each => /^st-good/.test(each.file));
	test.each(good)('$file gives its tensors', ({file: name, tensors}) => {
		const bytes = readFileSync(`${FIXTURES}/${name}`);
		const found = read(bytes).tensors.map(({name: key, dtype, shape, from, bytes: length}) => ({
			key,
			dtype,
			shape,
			sha256: createHash('sha256')
				.update(bytes.subarray(from, from + length))
				.digest('hex'),
		}));
		expect(found.sort(byKey)).toEqual([...tensors].sort(byKey));
	});

	const tensor = '{"dtype":"U8","shape":[4],"data_offsets":[0,4]}';
	const four = Buffer.alloc(4);
	test.each<[string, Buffer]>([
		['no room for a header length', Buffer.alloc(7)],
		['header is no JSON object', file('[]')],
		['header is no JSON object', file(`  {"a":${tensor}}`, four)],
		['more than one value', file(`{"a":${tensor}}{}`, four)],
		['header names a twice', file(`{"a":${tensor},"\\u0061":${tensor}}`, four)],
		['header names dtype twice', file('{"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}}', four)],
		[
			'sizes that are no whole numbers',
			file('{"a":{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,4]}}', four),
		],
		['sizes that are no whole numbers', file('{"a":{"dtype":"U8","shape":[4.5],"data_offsets":[0,4]}}', four)],
		['sizes that are no whole numbers', file('{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}')],
		[
			'bytes where its shape needs',
			file('{"a":{"dtype":"I64","shape":[4294967296,4294967296],"data_offsets":[0,4]}}', four),
		],
		['no dtype, shape and data_offsets', file('{"a":{"dtype":"U8","shape":[4]}}', four)],
		['unknown dtype', file('{"a":{"dtype":"toString","shape":[4],"data_offsets":[0,4]}}', four)],
		['does not start where the last tensor ends', file('{"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}}', four)],
		['1 bytes after the last tensor', file(`{"a":${tensor}}`, Buffer.alloc(5))],
		['ends 1 bytes early', file(`{"a":${tensor}}`, Buffer.alloc(3))],
		['metadata is not text to text', file(`{"__metadata__":{"a":1},"a":${tensor}}`, four)],
		['nested too deep', file(`${'{"a":'.repeat(50)}1${'}'.repeat(50)}`)],
		['header is not UTF-8', Buffer.concat([file('   ').subarray(0, 8), Buffer.from([0x7b, 0xff, 0x7d])])],
		['the header is cut off', file('{}', Buffer.alloc(0), 50)],
	])('refuses with "%s"', (why, bytes) => {
		expect(() => read(bytes)).toThrow(DamagedFile);
		expect(() => read(bytes)).toThrow(why);
	});

	test('a name means nothing', () => {
		const {tensors, metadata} = read(file(`{"__metadata__":{"__proto__":"x"},"__proto__":${tensor}}`, four));
		expect(tensors.map(({name}) => name)).toEqual(['__proto__']);
		expect([...metadata]).toEqual([['__proto__', 'x']]);
	});
});

describe('the writer', () => {
	test('largest elements first, then by name; header padded to 8; all of it reads back', () => {
		const plan = planSafetensors(
			[
				{name: 'mask', dtype: 'BOOL', shape: [3]},
				{name: '1', dtype: 'BF16', shape: [3, 2]},
				{name: '__proto__', dtype: 'BF16', shape: [0]},
				{name: 'ids', dtype: 'I64', shape: [3]},
			],
			{format: 'pt'},
		);
		expect(plan.header.toString('latin1', 8)).toBe(
			`${'{"__metadata__":{"format":"pt"},"ids":{"dtype":"I64","shape":[3],"data_offsets":[0,24]},"1":{"dtype":"BF16","shape":[3,2],"data_offsets":[24,36]},"__proto__":{"dtype":"BF16","shape":[0],"data_offsets":[36,36]},"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[36,39]}}'.padEnd(plan.header.length - 8)}`,
		);
		expect(plan.header.length % 8).toBe(0);
		const whole = Buffer.concat([plan.header, Buffer.alloc(39)]);
		expect(whole.length).toBe(plan.bytes);
		expect(read(whole).tensors).toEqual(plan.tensors);
		expect([...read(whole).metadata]).toEqual([['format', 'pt']]);
	});

	test('two tensors of one name are a mistake of the caller', () => {
		const one = {name: 'a', dtype: 'U8', shape: [1]} as const;
		expect(() => planSafetensors([one, one])).toThrow('names of their own');
	});
});
