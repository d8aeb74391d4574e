import {createHmac, randomBytes} from 'node:crypto';
import {expect, test} from 'vitest';
import {fingerprint, judgeHostKey, knownKeyTypes} from '../../../src/ops/transports/known-hosts.ts';

const keyOf = (type: string, body: number) => {
	const name = Buffer.from(type);
	const size = Buffer.alloc(4);
	size.writeUInt32BE(name.length);
	return Buffer.concat([size, name, Buffer.alloc(32, body)]);
};
const KEY = keyOf('ssh-ed25519', 1);
const OTHER = keyOf('ssh-ed25519', 2);
const line = (names: string, key = KEY, marker = '') =>
	`${marker}${names} ssh-ed25519 ${key.toString('base64')} a comment\n`;
const hashed = (name: string) => {
	const salt = randomBytes(20);
	return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
};

test.each([
	['a plain name', line('gpu.example'), 'gpu.example', 22, 'known'],
	['one of several names', line('a,gpu.example,10.0.0.1'), 'gpu.example', 22, 'known'],
	['a wildcard', line('*.example'), 'gpu.example', 22, 'known'],
	['a negated name', line('*.example,!gpu.example'), 'gpu.example', 22, 'unknown'],
	['a port of its own', line('[gpu.example]:2222'), 'gpu.example', 2222, 'known'],
	['a name without the port it needs', line('gpu.example'), 'gpu.example', 2222, 'unknown'],
	['a hashed name', line(hashed('gpu.example')), 'gpu.example', 22, 'known'],
	['a hashed name with port', line(hashed('[gpu.example]:2222')), 'gpu.example', 2222, 'known'],
	['another key', line('gpu.example', OTHER), 'gpu.example', 22, 'changed'],
	['several keys, one right', line('gpu.example', OTHER) + line('gpu.example'), 'gpu.example', 22, 'known'],
	[
		'a revoked key, whatever else says',
		line('gpu.example') + line('*', KEY, '@revoked '),
		'gpu.example',
		22,
		'revoked',
	],
	['a certificate authority', line('gpu.example', KEY, '@cert-authority '), 'gpu.example', 22, 'unknown'],
	['an empty file', '', 'gpu.example', 22, 'unknown'],
	['comments and torn lines', '# x\ngpu.example\n\n', 'gpu.example', 22, 'unknown'],
	['a dot that is not any character', line('gpuXexample'), 'gpu.example', 22, 'unknown'],
])('%s', (_name, text, host, port, verdict) => {
	expect(judgeHostKey(text, host, port, KEY)).toBe(verdict);
});

test('the fingerprint is the one that ssh prints', () => {
	expect(fingerprint(KEY)).toMatch(/^ssh-ed25519 SHA256:[A-Za-z0-9+/]{43}$/);
});

test('key types known for a host are asked for first', () => {
	expect(knownKeyTypes(`gpu ssh-rsa AAAA\ngpu ssh-ed25519 BBBB\nother ecdsa-sha2-nistp256 CCCC\n`, 'gpu', 22)).toEqual([
		'ssh-rsa',
		'ssh-ed25519',
	]);
});
