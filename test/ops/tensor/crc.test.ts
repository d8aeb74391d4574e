import {expect, test} from 'vitest';
import {crc32, preferNativeCrc} from '../../../src/ops/tensor/crc.ts';

const module = (text: string): string => `data:text/javascript,${encodeURIComponent(text)}`;
const word = Buffer.from('123456789');

test('the native package is taken only where it is installed and counts right', async () => {
	expect(await preferNativeCrc('a-package-that-nobody-has')).toBe('zlib');
	expect(await preferNativeCrc(module('export const crc32 = () => 1'))).toBe('zlib');
	expect(await preferNativeCrc(module('export {crc32} from "node:zlib"'))).toBe('native');
	expect(crc32(word)).toBe(0xcbf43926);
	expect(crc32(word.subarray(4), crc32(word.subarray(0, 4)))).toBe(0xcbf43926);
});
