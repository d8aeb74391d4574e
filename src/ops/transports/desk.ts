import {fingerprint, judgeHostKey, knownLine} from './known-hosts.ts';
import {localTransport} from './local.ts';
import {finish} from './program.ts';
import type {Asker, Question} from './question.ts';
import {createSkips} from './skips.ts';
import {readByChild} from './ssh-settings.ts';
import {SYSTEM_ENVIRONMENT} from './transport.ts';
import {unlockKey} from './unlock-key.ts';

/**
 * Where the routes of a host bring what only the operator knows, and where the answers are remembered while the program runs:
 * opened keys, passwords, and what was skipped, so that nothing is asked twice unless the operator says so. A question is never tied to one connection;
 * when it is answered its route is tried anew. (Prompts of keyboard-interactive are: see ssh-login.ts.)
 */
export type Desk = {
	/** null: nobody is there to ask. */
	readonly asker: Asker | null;
	key(file: string, text: string): KeyState;
	/** Asks for the passphrase, three times at most; then the key is open, or left out. */
	unlock(file: string, text: string): Promise<void>;
	password(account: string): PasswordState;
	/** `wrong`: the last one was not accepted. */
	askPassword(account: string, wrong: boolean): Promise<void>;
	/** Why this host key is not kept, once that was decided; null before. */
	hostKeyTrouble(name: string, key: Buffer): string | null;
	decideHostKey(name: string, key: Buffer, file: string, hashed: boolean): Promise<void>;
	/** Prompts of one server were skipped or answered in vain: not asked again. */
	giveUp(account: string, why: string): void;
	givenUp(account: string): string | null;
	/** What was skipped is asked for once more by the routes that want it while `work` tries them. */
	again(work: () => Promise<void>): Promise<void>;
};

export type KeyState =
	| {readonly kind: 'locked'}
	| {readonly kind: 'open'; readonly text: string}
	| {readonly kind: 'left-out'; readonly why: string};

export type PasswordState =
	| {readonly kind: 'unasked' | 'skipped'}
	| {readonly kind: 'given'; readonly password: string};

const TRIES = 3;

export function openDesk(asker: Asker | null): Desk {
	const keys = new Map<string, string>();
	const passwords = new Map<string, string>();
	const skips = createSkips();
	const open = new Map<string, Promise<void>>();

	/** Two routes may want the same thing at the same time: it is asked once. */
	function once(topic: string, work: () => Promise<void>): Promise<void> {
		const pending = open.get(topic) ?? work().finally(() => open.delete(topic));
		open.set(topic, pending);
		return pending;
	}

	const ask = async (question: Question): Promise<string | null> => (await asker?.ask(question))?.[0] ?? null;

	async function unlock(file: string, text: string): Promise<void> {
		for (let turn = 0; turn < TRIES; turn++) {
			const passphrase = await ask({kind: 'passphrase', file, again: turn > 0});
			if (passphrase === null) return leaveOut(file, 'its passphrase was not given');
			const unlocked = await unlockKey(text, passphrase);
			if (unlocked.kind === 'open') return void keys.set(file, unlocked.text);
			if (unlocked.kind === 'unreadable') return leaveOut(file, unlocked.why);
		}
		leaveOut(file, `${TRIES} passphrases did not open it`);
	}

	const leaveOut = (file: string, why: string): void => skips.add(`key ${file}`, why);

	function keyState(file: string): KeyState {
		const text = keys.get(file);
		if (text !== undefined) return {kind: 'open', text};
		const why = skips.why(`key ${file}`);
		return why === null ? {kind: 'locked'} : {kind: 'left-out', why};
	}

	function passwordState(account: string): PasswordState {
		const password = passwords.get(account);
		if (password !== undefined) return {kind: 'given', password};
		return {kind: skips.why(`password ${account}`) === null ? 'unasked' : 'skipped'};
	}

	async function decide(name: string, key: Buffer, file: string, hashed: boolean): Promise<void> {
		const answer = await ask({kind: 'host-key', name, label: fingerprint(key), file});
		const trouble = answer === 'yes' ? await keepHostKey(name, key, file, hashed) : 'it was not accepted';
		if (trouble !== null) skips.add(hostKeyTopic(name, key), trouble);
	}

	return {
		asker,
		key: keyState,
		unlock: (file, text) => once(`key ${file}`, () => unlock(file, text)),
		password: passwordState,
		askPassword: (account, wrong) =>
			once(`password ${account}`, async () => {
				const password = await ask({kind: 'password', account, again: wrong});
				if (password !== null) return void passwords.set(account, password);
				passwords.delete(account);
				skips.add(`password ${account}`, 'the password was not given');
			}),
		hostKeyTrouble: (name, key) => skips.why(hostKeyTopic(name, key)),
		decideHostKey: (name, key, file, hashed) => once(`host key ${name}`, () => decide(name, key, file, hashed)),
		giveUp: (account, why) => skips.add(`prompts ${account}`, why),
		givenUp: account => skips.why(`prompts ${account}`),
		again: skips.again,
	};
}

const hostKeyTopic = (name: string, key: Buffer): string => `host key ${name} ${key.toString('base64')}`;

/**
 * One line behind the others, in one write, by a child: the operator's home may be a mount that hangs. Read back, since only
 * the file says what is known. null: it is kept.
 */
async function keepHostKey(name: string, key: Buffer, file: string, hashed: boolean): Promise<string | null> {
	const command = ['/bin/sh', '-c', APPEND, 'sh', file, knownLine(name, key, hashed)];
	const opened = await localTransport(SYSTEM_ENVIRONMENT).open(command, 5_000);
	const outcome = opened.ok ? await finish(opened.value, null, 5_000) : opened;
	const said = outcome.ok ? outcome.value.stderr.trim() : outcome.failure.kind;
	if (!outcome.ok || outcome.value.status !== 0) return `it cannot be kept in ${file}: ${said}`;
	const text = (await readByChild(['cat', file], 2_000))?.toString() ?? '';
	return judgeHostKey([{path: file, text}], name, key).kind === 'known' ? null : `${file} does not keep it`;
}

/** A last line without an end is ended first, or both would be torn. */
const APPEND = `umask 077
mkdir -p "\${1%/*}" || exit
nl=
[ -s "$1" ] && [ "$(tail -c 1 "$1" | wc -l)" -eq 0 ] && nl='\\n'
printf "$nl%s\\n" "$2" >>"$1"`;
