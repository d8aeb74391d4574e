import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import ssh2 from 'ssh2';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {isEncrypted} from '../../../src/ops/transports/ssh-auth.ts';
import {unlockKey} from '../../../src/ops/transports/unlock-key.ts';

const directory = mkdtempSync(join(tmpdir(), 'relight-keys-'));
const make = (name: string, ...args: string[]) =>
	execFileSync('ssh-keygen', ['-q', '-N', 'open sesame', '-a', '1', '-f', join(directory, name), ...args]);
const text = (name: string) => readFileSync(join(directory, name), 'utf8');

beforeAll(() => {
	make('ed25519', '-t', 'ed25519');
	make('rsa', '-t', 'rsa', '-b', '2048');
	make('ecdsa', '-t', 'ecdsa', '-b', '384');
	make('pem', '-t', 'rsa', '-b', '2048', '-m', 'PEM');
});
afterAll(() => rmSync(directory, {recursive: true}));

test.each(['ed25519', 'rsa', 'ecdsa', 'pem'])('an encrypted %s key opens to the same key', async name => {
	const unlocked = await unlockKey(text(name), 'open sesame');
	if (unlocked.kind !== 'open') throw new Error(unlocked.kind);
	expect([isEncrypted(text(name)), isEncrypted(unlocked.text)]).toEqual([true, false]);
	const [key] = [ssh2.utils.parseKey(unlocked.text)].flat();
	if (!key || key instanceof Error) throw key;
	const [type, blob] = text(`${name}.pub`).split(' ');
	expect([key.type, key.getPublicSSH().toString('base64')]).toEqual([type, blob]);
	const [open] = [ssh2.utils.parseKey(text(`${name}.pub`))].flat();
	if (!open || open instanceof Error) throw open;
	expect(open.verify('words', key.sign('words'))).toBe(true);
});

test.each(['ed25519', 'pem'])('a wrong passphrase of an %s key is told from a file that is no key', async name => {
	expect(await unlockKey(text(name), 'open barley')).toEqual({kind: 'wrong'});
	expect(await unlockKey('no key at all', 'x')).toMatchObject({kind: 'unreadable'});
});
