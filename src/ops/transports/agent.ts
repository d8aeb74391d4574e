import {connect} from 'node:net';
import {within} from './program.ts';

const LIMIT_MS = 1_500;
/** SSH_AGENTC_REQUEST_IDENTITIES and the kind of its answer. Source: draft-miller-ssh-agent. */
const ASK_KEYS = Buffer.from([0, 0, 0, 1, 11]);
const KEYS = 12;

/**
 * Why the agent is of no use, or null. One that is forwarded over a dead link takes connections and never answers, and the
 * login would wait for it as long as it may take.
 */
export async function agentTrouble(path: string): Promise<string | null> {
	const socket = connect(path);
	const answer = new Promise<string | null>(resolve => {
		let seen = Buffer.alloc(0);
		socket.on('error', error => resolve(`the agent at ${path} is gone (${(error as NodeJS.ErrnoException).code})`));
		socket.on('close', () => resolve(`the agent at ${path} hung up`));
		socket.on('data', chunk => {
			seen = Buffer.concat([seen, chunk]);
			if (seen.length >= 5) resolve(seen[4] === KEYS ? null : `the agent at ${path} gives no keys`);
		});
		socket.write(ASK_KEYS);
	});
	const trouble = await within(
		answer.then(words => ({words})),
		LIMIT_MS,
	);
	socket.destroy();
	return trouble ? trouble.words : `the agent at ${path} does not answer`;
}
