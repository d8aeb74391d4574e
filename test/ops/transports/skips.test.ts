import {expect, test} from 'vitest';
import {createSkips} from '../../../src/ops/transports/skips.ts';

test('what was skipped stays so by itself', () => {
	const skips = createSkips();
	expect(skips.why('key a')).toBeNull();
	skips.add('key a', 'its passphrase was not given');
	expect([skips.why('key a'), skips.why('key a')]).toEqual(Array(2).fill('its passphrase was not given'));
});

test('asked again: once for each topic that is wanted meanwhile; the others stay skipped', async () => {
	const skips = createSkips();
	for (const topic of ['key a', 'key b', 'key c']) skips.add(topic, 'skipped');
	await skips.again(async () => {
		expect(skips.why('key a')).toBeNull();
		expect(skips.why('key b')).toBeNull();
		skips.add('key b', 'skipped again');
		expect(skips.why('key b')).toBe('skipped again');
	});
	expect(['key a', 'key b', 'key c'].map(skips.why)).toEqual([null, 'skipped again', 'skipped']);
});

test('also when trying ends badly', async () => {
	const skips = createSkips();
	skips.add('key a', 'skipped');
	await expect(skips.again(() => Promise.reject(new Error('lost')))).rejects.toThrow('lost');
	expect(skips.why('key a')).toBe('skipped');
});
