import {expect, test} from 'vitest';
import {crc32, joinedCrc, preferNativeCrc} from '../../../src/ops/tensor/crc.ts';

const module = (text: string): string => `data:text/javascript,${encodeURIComponent(text)}`;
const word = Buffer.from('123456789');

test('the native package is taken only where it is installed and counts right', async () => {
	expect(await preferNativeCrc('a-package-that-nobody-has')).toBe('zlib');
	expect(await preferNativeCrc(module('export const crc32 = () => 1'))).toBe('zlib');
	expect(await preferNativeCrc(module('export {crc32} from "node:zlib"'))).toBe('native');
	expect(crc32(word)).toBe(0xcbf43926);
	expect(crc32(word.subarray(4), crc32(word.subarray(0, 4)))).toBe(0xcbf43926);
});

test('the sum of a whole follows from the sums of its parts', () => {
	const whole = Buffer.from(Array.from({length: 5_000}, (_, at) => (at * 7) & 255));
	const cuts = [0, 0, 1, 9, 64, 65, 4_100, 5_000];
	const parts = cuts.slice(1).map((to, at) => whole.subarray(cuts[at], to));
	expect(joinedCrc(parts.map(part => ({crc: crc32(part), bytes: part.length})))).toBe(crc32(whole));
	expect(joinedCrc([])).toBe(0);
});

test('a part of many gigabytes counts as many small ones', () => {
	const zeros = Buffer.alloc(1 << 20);
	const part = {crc: crc32(zeros), bytes: zeros.length};
	const start = {crc: crc32(word), bytes: word.length};
	const many = Array.from({length: 5_000}, () => part);
	expect(joinedCrc([start, part])).toBe(crc32(zeros, crc32(word)));
	const large = {crc: joinedCrc(many), bytes: many.length * part.bytes};
	expect(large.bytes).toBeGreaterThan(2 ** 32);
	expect(joinedCrc([start, large])).toBe(joinedCrc([start, ...many]));
});
