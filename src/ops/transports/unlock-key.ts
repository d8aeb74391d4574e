import {createPrivateKey} from 'node:crypto';
import {createRequire} from 'node:module';
import {Worker} from 'node:worker_threads';

/** The text of an encrypted private key → the text of the same key without a passphrase, in memory only. */
export type Unlocked =
	| {readonly kind: 'open'; readonly text: string}
	| {readonly kind: 'wrong'}
	| {readonly kind: 'unreadable'; readonly why: string};

/**
 * In a thread of its own: the key derivation takes about a second of pure computing, and no key press waits for that. `wrong`:
 * not this passphrase. Source: ssh2's reader (OpenSSH and PEM files of RSA, ECDSA and Ed25519 keys).
 */
export function unlockKey(text: string, passphrase: string): Promise<Unlocked> {
	const ssh2 = createRequire(import.meta.url).resolve('ssh2');
	const worker = new Worker(DERIVE, {eval: true, workerData: {ssh2, text, passphrase}});
	return new Promise(resolve => {
		worker.once('message', ({pem, error}: {pem?: string; error?: string}) => {
			if (pem !== undefined) return resolve(reopened(pem));
			resolve(/bad passphrase|bad decrypt|integrity check/i.test(error ?? '') ? {kind: 'wrong'} : unreadable(error));
		});
		worker.once('error', error => resolve(unreadable(error.message)));
	});
}

const DERIVE = `
const {parentPort, workerData: {ssh2, text, passphrase}} = require('node:worker_threads');
const [key] = [require(ssh2).utils.parseKey(text, passphrase)].flat();
parentPort.postMessage(key instanceof Error ? {error: key.message} : {pem: key.getPrivatePEM()});
`;

const unreadable = (why = 'no answer'): Unlocked => ({kind: 'unreadable', why});

/** ssh2 gives PKCS #8 for Ed25519 keys and does not read that itself: they go back into OpenSSH's own form. */
function reopened(pem: string): Unlocked {
	const key = createPrivateKey(pem);
	if (key.asymmetricKeyType !== 'ed25519') return {kind: 'open', text: pem};
	const {x = '', d = ''} = key.export({format: 'jwk'});
	const open = Buffer.from(x, 'base64url');
	const secret = Buffer.concat([Buffer.from(d, 'base64url'), open]);
	const type = field('ssh-ed25519');
	const check = Buffer.alloc(8);
	const body = Buffer.concat([check, type, field(open), field(secret), field('')]);
	const padding = Buffer.from(Array.from({length: (8 - (body.length % 8)) % 8}, (_, index) => index + 1));
	const whole = Buffer.concat([
		Buffer.from('openssh-key-v1\0'),
		...['none', 'none', ''].map(field),
		Buffer.from([0, 0, 0, 1]),
		field(Buffer.concat([type, field(open)])),
		field(Buffer.concat([body, padding])),
	]);
	const lines = whole.toString('base64').match(/.{1,70}/g) ?? [];
	return {
		kind: 'open',
		text: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`,
	};
}

function field(value: Buffer | string): Buffer {
	const bytes = Buffer.from(value as string);
	const length = Buffer.alloc(4);
	length.writeUInt32BE(bytes.length);
	return Buffer.concat([length, bytes]);
}
