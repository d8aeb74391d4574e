import {createHmac, randomBytes} from 'node:crypto';
import {expect, test} from 'vitest';
import {
	fingerprint,
	judgeHostKey,
	knownKeyTypes,
	knownLine,
	knownName,
} from '../../../src/ops/transports/known-hosts.ts';

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
	expect(judgeHostKey([{path: 'known', text}], knownName(host, port), KEY).kind).toBe(verdict);
});

test('the fingerprint is the one that ssh prints', () => {
	expect(fingerprint(KEY)).toMatch(/^ED25519 SHA256:[A-Za-z0-9+/]{43}$/);
});

test('key types known for a host are asked for first', () => {
	const text = 'gpu ssh-rsa AAAA\ngpu ssh-ed25519 BBBB\n@revoked gpu ssh-dss DDDD\nother ecdsa-sha2-nistp256 CCCC\n';
	expect(knownKeyTypes([{path: 'known', text}], 'gpu')).toEqual(['ssh-rsa', 'ssh-ed25519']);
});

test('a changed key names the lines that say otherwise, in every file', () => {
	const files = [
		{path: '/me/known_hosts', text: `# first\n${line('gpu', OTHER)}`},
		{path: '/etc/known_hosts', text: line('other') + line(hashed('gpu'), OTHER)},
	];
	expect(judgeHostKey(files, 'gpu', KEY)).toEqual({
		kind: 'changed',
		by: [
			{file: '/me/known_hosts', line: 2, label: fingerprint(OTHER)},
			{file: '/etc/known_hosts', line: 2, label: fingerprint(OTHER)},
		],
	});
	expect(judgeHostKey([{path: 'a', text: line('gpu', KEY, '@revoked ')}], 'gpu', KEY)).toEqual({
		kind: 'revoked',
		by: [{file: 'a', line: 1, label: fingerprint(KEY)}],
	});
});

test.each([false, true])('a line that is written (hashed: %s) is known when it is read', hashedLine => {
	const text = knownLine('[gpu]:2222', KEY, hashedLine);
	expect(text.includes('gpu')).toBe(!hashedLine);
	expect(judgeHostKey([{path: 'a', text}], '[gpu]:2222', KEY)).toEqual({kind: 'known'});
	expect(judgeHostKey([{path: 'a', text}], 'gpu', KEY)).toEqual({kind: 'unknown'});
});
