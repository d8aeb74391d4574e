import type {Failure} from '../outcome.ts';
import type {Desk} from './desk.ts';
import {topicOf} from './question.ts';
import type {Hop} from './ssh-hops.ts';

export type AuthOptions = {
	readonly desk: Desk;
	readonly stop: AbortSignal;
	/** Why the agent is of no use, or null. */
	readonly agentNote: string | null;
	onAsks(detail: string, answered: Promise<void>): void;
	onPrompts(open: boolean): void;
	/** Why no method is left, in better words than "all failed". */
	onTrouble(failure: Failure): void;
};

/** One attempt; `method` is what the server must still offer for it. null: nothing to offer now. */
type Attempt = {readonly method: string; make(): Offer | null};
type Offer = object | 'stop';
type Next = (offer: object | false) => void;
type ServerPrompt = {readonly prompt: string; readonly echo?: boolean};

const PROMPT_ROUNDS = 3;

/**
 * Methods in ssh(1)'s order: agent, keys that are open, encrypted ones, keyboard-interactive, password. The server is asked
 * first what it takes, so that nothing is asked of the operator in vain. What only the operator knows ends this attempt; when
 * it is answered the next one has it. Prompts alone belong to the one connection that they came on.
 */
export function authMethods(
	hop: Hop,
	options: AuthOptions,
): (left: string[] | null, partial: boolean, next: Next) => void {
	const {desk} = options;
	const account = `${hop.user}@${hop.keyName}`;
	const username = hop.user;
	const notes: string[] = [];
	const offered: string[] = [];

	function asks(detail: string, answered: Promise<void>): 'stop' {
		options.onTrouble({kind: 'asks', detail});
		options.onAsks(detail, answered);
		return 'stop';
	}

	const offerAgent = (): Offer | null =>
		options.agentNote === null ? {type: 'agent', username, agent: hop.agent} : note(options.agentNote);

	function offerKey({file, text}: Hop['keys'][number], encrypted: boolean): Offer | null {
		if (!encrypted) return {type: 'publickey', username, key: text};
		const state = desk.key(file, text);
		if (state.kind === 'open') return {type: 'publickey', username, key: state.text};
		if (state.kind === 'left-out') return note(`${file}: ${state.why}`);
		if (!desk.asker) return note(`${file} is encrypted: \`ssh-add ${file}\` opens it for this session`);
		return asks(topicOf({kind: 'passphrase', file, again: false}), desk.unlock(file, text));
	}

	function offerPrompts(): Offer | null {
		const given = desk.givenUp(account);
		if (given !== null) return note(given);
		if (!desk.asker) return note('the server would ask (keyboard-interactive): that needs a terminal');
		return {type: 'keyboard-interactive', username, prompt};
	}

	/** The server's prompts, whatever they are; cleaned where they are shown. */
	function prompt(
		title: string,
		instructions: string,
		_language: string,
		prompts: ServerPrompt[],
		finish: (answers: string[]) => void,
	) {
		if (prompts.length === 0) return finish([]);
		options.onPrompts(true);
		const question = {
			kind: 'prompts' as const,
			account,
			title,
			instructions,
			prompts: prompts.map(each => ({text: each.prompt, echo: each.echo === true})),
		};
		desk.asker?.ask(question, options.stop).then(answers => {
			options.onPrompts(false);
			if (answers === null) desk.giveUp(account, 'its prompts were not answered');
			finish(answers ? [...answers] : prompts.map(() => ''));
		});
	}

	function offerPassword(): Offer | null {
		const state = desk.password(account);
		const given = desk.givenUp(account);
		if (given !== null) return null;
		if (state.kind === 'skipped') return note('the password was not given');
		if (!desk.asker) return note('the server would take a password: that needs a terminal');
		const wrong = offered.includes('password');
		if (state.kind === 'given' && !wrong) {
			offered.push('password');
			return {type: 'password', username, password: state.password};
		}
		return asks(topicOf({kind: 'password', account, again: wrong}), desk.askPassword(account, wrong));
	}

	function note(words: string): null {
		notes.push(words);
		return null;
	}

	const open = hop.keys.filter(key => !isEncrypted(key.text));
	const locked = hop.keys.filter(key => isEncrypted(key.text));
	const attempts: Attempt[] = [
		...(hop.agent ? [{method: 'publickey', make: offerAgent}] : []),
		...open.map(key => ({method: 'publickey', make: () => offerKey(key, false)})),
		...locked.map(key => ({method: 'publickey', make: () => offerKey(key, true)})),
		...Array.from({length: PROMPT_ROUNDS}, () => ({method: 'keyboard-interactive', make: offerPrompts})),
		{
			method: 'keyboard-interactive',
			make: () => {
				if (desk.asker && desk.givenUp(account) === null) desk.giveUp(account, 'its prompts were answered in vain');
				return null;
			},
		},
		{method: 'password', make: offerPassword},
		{method: 'password', make: () => (offered.includes('password') ? offerPassword() : null)},
	];

	return (left, _partial, next) => {
		if (left === null) return next({type: 'none', username});
		for (;;) {
			const attempt = attempts.shift();
			if (!attempt) break;
			if (!left.includes(attempt.method)) continue;
			const offer = attempt.make();
			if (offer === 'stop') return next(false);
			if (offer !== null) return next(offer);
		}
		const why = [...new Set(notes)].join('; ');
		const keys = hop.keys.length > 0 || hop.agent ? 'no offered key was accepted' : 'there is no key to offer';
		options.onTrouble({
			kind: 'denied',
			detail: `${account} refuses the login: ${keys} (it takes ${left.join(', ')})${why ? `; ${why}` : ''}`,
		});
		next(false);
	};
}

/** By what stands in the file itself: OpenSSH's own form names its cipher first, PEM has a header line. */
export function isEncrypted(text: string): boolean {
	if (/^Proc-Type: 4,ENCRYPTED|BEGIN ENCRYPTED PRIVATE KEY/m.test(text)) return true;
	const body = /BEGIN OPENSSH PRIVATE KEY-----\s([\s\S]*?)-----END/.exec(text)?.[1];
	if (body === undefined) return false;
	const bytes = Buffer.from(body.replace(/\s/g, ''), 'base64');
	const at = 'openssh-key-v1\0'.length;
	return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at)).toString() !== 'none';
}
