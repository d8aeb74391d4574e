import {createHash, createHmac} from 'node:crypto';

/**
 * What known_hosts says of a key: `known`, `changed` (the host has other keys of any type there), `revoked`, or `unknown`
 * (no line names the host). Source: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT; plain, wildcard, negated, `[host]:port` and
 * hashed names, `@revoked`; `@cert-authority` lines are left out (certificates are not spoken here).
 */
export type HostKeyVerdict = 'known' | 'changed' | 'revoked' | 'unknown';

export function judgeHostKey(knownHosts: string, host: string, port: number, key: Buffer): HostKeyVerdict {
	const name = port === 22 ? host : `[${host}]:${port}`;
	const blob = key.toString('base64');
	let named = false;
	let verdict: HostKeyVerdict | null = null;
	for (const line of knownHosts.split('\n')) {
		const words = line.trim().split(/\s+/);
		if (!words[0] || words[0].startsWith('#')) continue;
		const marker = words[0].startsWith('@') ? words.shift() : null;
		const [names, , text] = words;
		if (!names || !text || marker === '@cert-authority' || !matches(names, name)) continue;
		if (marker === '@revoked') {
			if (text === blob) return 'revoked';
			continue;
		}
		named = true;
		if (text === blob) verdict = 'known';
	}
	if (verdict) return verdict;
	return named ? 'changed' : 'unknown';
}

/** As `ssh` prints it, to be compared by eye with what the other end shows. */
export const fingerprint = (key: Buffer): string =>
	`${keyType(key)} SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

/** Key types of the lines that name the host: what to ask the server for, so that a known key of another type is found. */
export function knownKeyTypes(knownHosts: string, host: string, port: number): string[] {
	const name = port === 22 ? host : `[${host}]:${port}`;
	const types = new Set<string>();
	for (const line of knownHosts.split('\n')) {
		const [names, type, text] = line.trim().split(/\s+/);
		if (names && type && text && !names.startsWith('#') && !names.startsWith('@') && matches(names, name))
			types.add(type);
	}
	return [...types];
}

function keyType(key: Buffer): string {
	const length = key.length >= 4 ? key.readUInt32BE(0) : 0;
	return length > 0 && length < 64 ? key.subarray(4, 4 + length).toString('latin1') : '';
}

function matches(names: string, name: string): boolean {
	if (names.startsWith('|1|')) {
		const [, , salt, hash] = names.split('|');
		if (!salt || !hash) return false;
		return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === hash;
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
