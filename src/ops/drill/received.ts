import {isLockScript} from '../act-lock.ts';
import {DEFINE_MARK} from '../formats/sections.ts';

/** Says hello on a lane, and nothing else. */
const HELLO = 'echo relight';

/**
 * What the box was told to do, as its own SSH servers heard it: every script of a lane and of a command, but for looks,
 * greetings and the action lock. A score compares it with what was planned.
 */
export class Received {
	readonly acts: string[] = [];
	/** Told of each before it reaches its shell. */
	onAct: (script: string) => void = () => {};

	/** The command of one session. A lane's is the bare shell, and what it is told comes by `listen`. */
	command(text: string): void {
		const words = shellWords(text);
		if (words.at(-1) === '/bin/sh') return;
		this.hear(words.at(-2) === '-c' ? (words.at(-1) ?? '') : text);
	}

	/** For the standard input of one session; requests come framed, in one piece or several. */
	listen(): (piece: Buffer) => void {
		let text = '';
		return piece => {
			text += piece.toString('latin1');
			for (;;) {
				const from = text.indexOf(OPEN);
				const to = from < 0 ? -1 : text.indexOf(CLOSE, from);
				if (to < 0) break;
				this.hear(Buffer.from(shellWords(text.slice(from + OPEN.length, to))[0] ?? '', 'latin1').toString('utf8'));
				text = text.slice(to + CLOSE.length);
			}
			// A file that is sent has no frames: what cannot be the beginning of one is not kept.
			if (!text.includes(OPEN)) text = text.slice(-OPEN.length);
		};
	}

	private hear(script: string): void {
		if (script === HELLO || script.includes(DEFINE_MARK) || isLockScript(script)) return;
		this.acts.push(script);
		this.onAct(script);
	}
}

const OPEN = '( eval ';
const CLOSE = ' ) </dev/null\n';

/** Words of a line as `show` writes it: plain, or in single quotes with `'\''` for one. */
export function shellWords(line: string): string[] {
	const words: string[] = [];
	for (const [, word = ''] of line.matchAll(/((?:'[^']*'|\\[\s\S]|[^\s'\\])+)/g))
		words.push(
			word.replaceAll(/'([^']*)'|\\([\s\S])/g, (_, quoted?: string, escaped?: string) => quoted ?? escaped ?? ''),
		);
	return words;
}
