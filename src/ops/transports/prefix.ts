import {type Command, show} from '../command.ts';
import {bad, type Failure} from '../outcome.ts';

/**
 * Programs that lead from one place to another, as argument prefixes: `pct exec 129 --`, `docker exec -i NAME`,
 * `nsenter -t PID -a`, `sudo -n`, one behind another where needed (`pct exec 129 -- docker exec -i NAME`). They pass arguments on as
 * they are; `ssh` joins them into one line for the shell at its far end, so that everything behind it is quoted once more.
 */
type PrefixProgram = {
	/** The prefix with what its owner may have left out and a lane cannot do without. */
	complete(words: Command): Command;
	/** Where the program that it starts stands in its words; their number when that is the lane's own command. */
	inner(words: Command): number;
	/** What it prints when it starts nothing. */
	readonly troubles: readonly Trouble[];
};

type Trouble = {
	readonly says: RegExp;
	/** `denied`: repeating does not mend it. */
	readonly kind: 'unreachable' | 'denied';
	words(match: RegExpExecArray, prefix: Command): string;
};

const DOCKER: PrefixProgram = {
	complete: interactive,
	inner: words => afterOptions(words, 2, /^(-[a-z]*[uew]|--(user|env|workdir|env-file|detach-keys))$/) + 1,
	troubles: [
		{
			says: /no such container:? *(\S+)?/i,
			kind: 'unreachable',
			words: (match, prefix) => `there is no container ${match[1] ?? prefix.at(-1)}: \`${prefix[0]} ps -a\` lists them`,
		},
		{
			says: /container \S+ is not running/i,
			kind: 'unreachable',
			words: (_, prefix) =>
				`container ${prefix.at(-1)} is not running: \`${prefix[0]} start ${prefix.at(-1)}\` starts it`,
		},
		{
			says: /is paused/i,
			kind: 'unreachable',
			words: (_, prefix) =>
				`container ${prefix.at(-1)} is paused: \`${prefix[0]} unpause ${prefix.at(-1)}\` lets it go on`,
		},
		{
			says: /permission denied .*daemon|dial unix \S+: connect: permission denied/i,
			kind: 'denied',
			words: (_, prefix) =>
				`this user may not use ${prefix[0]}: another user in \`ssh:\`, or \`through: sudo -n ${show(prefix)}\``,
		},
		{
			says: /cannot connect to the docker daemon/i,
			kind: 'unreachable',
			words: () => 'the docker daemon does not run there',
		},
	],
};

const PROGRAMS: Readonly<Record<string, PrefixProgram>> = {
	pct: {
		complete: words => (words[1] === 'exec' && !words.includes('--') ? [...words, '--'] : words),
		inner: words => (words[3] === '--' ? 4 : 3),
		troubles: [
			{
				says: /(?:CT|container) '?(\d+)'? (?:is )?not running|failed to get init pid/i,
				kind: 'unreachable',
				words: (_, prefix) => `CT ${prefix[2]} is stopped: \`pct start ${prefix[2]}\` on the hypervisor starts it`,
			},
			{
				says: /CT is locked \(([\w-]+)\)/i,
				kind: 'unreachable',
				words: (match, prefix) =>
					`CT ${prefix[2]} is locked (${match[1]}): wait for its end; \`pct unlock ${prefix[2]}\` only when nothing works on it any more`,
			},
			{
				says: /configuration file \S+ does not exist/i,
				kind: 'unreachable',
				words: (_, prefix) => `there is no CT ${prefix[2]} on this node: \`pct list\` there shows them`,
			},
			{
				says: /ipcc_send_rec|unable to (?:load|read) .*\/etc\/pve/i,
				kind: 'unreachable',
				words: () => 'the hypervisor cannot read its own configuration (/etc/pve): `systemctl status pve-cluster`',
			},
		],
	},
	docker: DOCKER,
	podman: DOCKER,
	nsenter: {
		complete: words => words,
		inner: words => afterOptions(words, 1, /^(-[a-zA-Z]*[tSGrwW]|--(target|setuid|setgid))$/),
		troubles: [
			{
				says: /(?:cannot open|stat of) \/proc\/(\d+)\/ns\/\w+.*no such file/i,
				kind: 'unreachable',
				words: match =>
					`process ${match[1]} is gone: find the new pid (\`lxc-info -pH -n …\`, \`docker inspect -f {{.State.Pid}} …\`)`,
			},
			{
				says: /operation not permitted|permission denied/i,
				kind: 'denied',
				words: (_, prefix) =>
					`nsenter needs root there: another user in \`ssh:\`, or \`through: sudo -n ${show(prefix)}\``,
			},
		],
	},
	sudo: {
		complete: words => (words.some(word => /^-[A-Za-z]*n/.test(word)) ? words : ['sudo', '-n', ...words.slice(1)]),
		inner: words => afterOptions(words, 1, /^-[A-Za-z]*[ugpCTRDrthU]$/),
		troubles: [
			{
				says: /a password is required|a terminal is required/i,
				kind: 'denied',
				words: () => 'sudo needs a password there: allow this user NOPASSWD in sudoers, or log in as root',
			},
			{
				says: /(\S+) is not in the sudoers file|(\S+) may not run|not allowed to execute/i,
				kind: 'denied',
				words: match => `${match[1] ?? match[2] ?? 'this user'} may not use sudo there: log in as another user`,
			},
		],
	},
	ssh: {
		complete: words => words,
		inner: words => words.length,
		troubles: [
			{
				says: /^ssh: .*|host key verification failed|permission denied \(.*/im,
				kind: 'unreachable',
				words: match => `the inner ssh says: ${match[0]}`,
			},
		],
	},
};

/** The first word behind the options from `from` on; those that match `valued` take the next word with them. */
function afterOptions(words: Command, from: number, valued: RegExp): number {
	let at = from;
	while (at < words.length && words[at]?.startsWith('-')) at += valued.test(words[at] ?? '') ? 2 : 1;
	return at;
}

/** One program after another, outermost first. */
function links(prefix: Command): readonly Command[] {
	if (prefix.length === 0) return [];
	const at = PROGRAMS[nameOf(prefix)]?.inner(prefix) ?? prefix.length;
	return [prefix.slice(0, at), ...links(prefix.slice(at))];
}

const nameOf = ([program = '']: Command): string => program.slice(program.lastIndexOf('/') + 1);

export const completePrefix = (prefix: Command): Command =>
	links(prefix).flatMap(link => PROGRAMS[nameOf(link)]?.complete(link) ?? link);

/** A guest of a hypervisor, and the words that ask about it. */
export type Guest = {readonly pct: Command; readonly id: string};

/**
 * The guest that a prefix leads into; null when it leads elsewhere. It is asked about with the words that lead into it, since
 * what may be run on the hypervisor, and as whom, is known of these alone.
 */
export function guestIn(given: Command): Guest | null {
	const words = completePrefix(given);
	const at = words.findIndex((word, index) => nameOf([word]) === 'pct' && words[index + 1] === 'exec');
	const id = words[at + 2];
	return at >= 0 && id !== undefined && /^\d+$/.test(id) ? {pct: words.slice(0, at + 1), id} : null;
}

/** The command behind its prefix. */
export const behind = (prefix: Command, command: Command): Command =>
	links(prefix).some(link => nameOf(link) === 'ssh') ? [...prefix, show(command)] : [...prefix, ...command];

/** Why the prefix started nothing, when what it printed says so. */
export function explainPrefix(prefix: Command, said: string): Failure | null {
	for (const link of links(prefix)) {
		const name = nameOf(link);
		if (new RegExp(`\\b${name}: (?:not found|No such file or directory)`).test(said))
			return bad({kind: 'unreachable', phase: 'start', detail: `there is no \`${name}\` there`}).failure;
		for (const {says, kind, words} of PROGRAMS[name]?.troubles ?? []) {
			const match = says.exec(said);
			if (!match) continue;
			const detail = words(match, link);
			return kind === 'denied' ? {kind, detail} : {kind, phase: 'start', detail};
		}
	}
	return null;
}

/** Input on, terminal off: a lane has three pipes. */
function interactive(words: Command): Command {
	if (words[1] !== 'exec') return words;
	const kept = words.slice(2).flatMap(word => {
		if (word === '-t' || word === '--tty' || word === '-i' || word === '--interactive') return [];
		return /^-[a-z]*[it]/.test(word) && !word.startsWith('--') ? word.replaceAll(/[it]/g, '') : word;
	});
	return [words[0] ?? '', 'exec', '-i', ...kept.filter(word => word !== '-')];
}
