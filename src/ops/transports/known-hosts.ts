import {createHash, createHmac, randomBytes} from 'node:crypto';

/** A file of known host keys as it was read; a file that is not there is an empty text. */
export type KnownHostsFile = {readonly path: string; readonly text: string};

/** One line that names a host. `line` is 1-based. */
export type KnownKey = {readonly file: string; readonly line: number; readonly label: string};

/**
 * What known_hosts says of a key: `known`, `changed` (the host has other keys of any type there), `revoked`, or `unknown`
 * (no line names the host). Source: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT; plain, wildcard, negated, `[host]:port` and
 * hashed names, `@revoked`; `@cert-authority` lines are left out (certificates are not spoken here).
 */
export type HostKeyVerdict =
	| {readonly kind: 'known' | 'unknown'}
	| {readonly kind: 'changed' | 'revoked'; readonly by: readonly KnownKey[]};

/** The name a host has in known_hosts. */
export const knownName = (host: string, port: number): string =>
	(port === 22 ? host : `[${host}]:${port}`).toLowerCase();

export function judgeHostKey(files: readonly KnownHostsFile[], name: string, key: Buffer): HostKeyVerdict {
	const blob = key.toString('base64');
	const others: KnownKey[] = [];
	let known = false;
	for (const {marker, text, where} of linesFor(files, name)) {
		if (marker === '@revoked') {
			if (text === blob) return {kind: 'revoked', by: [where]};
		} else if (text === blob) known = true;
		else others.push(where);
	}
	if (known) return {kind: 'known'};
	return others.length > 0 ? {kind: 'changed', by: others} : {kind: 'unknown'};
}

/** As `ssh` prints it, to be compared by eye with what the other end shows: `ED25519 SHA256:…`. */
export const fingerprint = (key: Buffer): string =>
	`${typeLabel(keyType(key))} SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

/** Key types of the lines that name the host: what to ask the server for, so that a known key of another type is found. */
export const knownKeyTypes = (files: readonly KnownHostsFile[], name: string): string[] => [
	...new Set(linesFor(files, name).flatMap(({marker, type}) => (marker === null ? [type] : []))),
];

/** The line that makes a key known, without its end; hashed where names are not to be read from the file. */
export function knownLine(name: string, key: Buffer, hashed: boolean): string {
	return `${hashed ? hashName(name, randomBytes(20)) : name} ${keyType(key)} ${key.toString('base64')}`;
}

const hashName = (name: string, salt: Buffer): string =>
	`|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;

type Line = {readonly marker: string | null; readonly type: string; readonly text: string; readonly where: KnownKey};

/** Torn lines, comments and certificate authorities are left out. */
function linesFor(files: readonly KnownHostsFile[], name: string): readonly Line[] {
	return files.flatMap(({path, text: all}) =>
		all.split('\n').flatMap((line, index): Line[] => {
			const words = line.trim().split(/\s+/);
			if (!words[0] || words[0].startsWith('#')) return [];
			const marker = words[0].startsWith('@') ? (words.shift() ?? null) : null;
			const [names, type, text] = words;
			if (!names || !type || !text || marker === '@cert-authority' || !matches(names, name)) return [];
			const label = fingerprint(Buffer.from(text, 'base64'));
			return [{marker, type, text, where: {file: path, line: index + 1, label}}];
		}),
	);
}

export function keyType(key: Buffer): string {
	const length = key.length >= 4 ? key.readUInt32BE(0) : 0;
	return length > 0 && length < 64 ? key.subarray(4, 4 + length).toString('latin1') : '';
}

const typeLabel = (type: string): string =>
	type
		.replace(/^ssh-/, '')
		.replace(/^ecdsa-sha2-.*/, 'ecdsa')
		.replace(/@openssh\.com$/, '')
		.toUpperCase();

function matches(names: string, name: string): boolean {
	if (names.startsWith('|1|')) {
		const [, , salt, hash] = names.split('|');
		return Boolean(salt && hash) && hashName(name, Buffer.from(salt ?? '', 'base64')) === names;
	}
	let hit = false;
	for (const pattern of names.split(',')) {
		const negated = pattern.startsWith('!');
		if (!wildcard(negated ? pattern.slice(1) : pattern).test(name)) continue;
		if (negated) return false;
		hit = true;
	}
	return hit;
}

function wildcard(pattern: string): RegExp {
	const escaped = pattern
		.replace(/[.+^${}()|[\]\\]/g, '\\$&')
		.replaceAll('*', '.*')
		.replaceAll('?', '.');
	return new RegExp(`^${escaped}$`, 'i');
}
