import {quote, show} from '../command.ts';
import {keyType} from './known-hosts.ts';
import type {Hop} from './ssh-hops.ts';

/** How to keep a host key by hand, where nobody can be asked: the exact command, which differs behind another host. */
export function headlessWords(hop: Hop, key: Buffer, jumps: readonly string[]): string {
	const [file = '~/.ssh/known_hosts'] = hop.knownHostsFiles;
	const port = hop.port === 22 ? [] : ['-p', String(hop.port)];
	const scanType = keyType(key)
		.replace(/^ssh-/, '')
		.replace(/^ecdsa-.*/, 'ecdsa');
	const byHand =
		jumps.length > 0
			? show([
					'ssh',
					'-J',
					jumps.join(','),
					...port,
					'-o',
					`UserKnownHostsFile=${file}`,
					`${hop.user}@${hop.host}`,
					'true',
				])
			: `${show(['ssh-keyscan', ...port, '-t', scanType, hop.host])} >>${quote(file)}`;
	return `compare it with the host's own (\`ssh-keygen -lf /etc/ssh/ssh_host_${scanType}_key.pub\` there), then keep it: ${byHand}`;
}
