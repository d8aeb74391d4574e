import {closeSync, openSync, writeSync} from 'node:fs';
import {ReadStream} from 'node:tty';
import {type Asker, promptsOf, type Question} from '../src/ops/transports/question.ts';
import {clean} from '../src/ui/safe.ts';

const TERMINAL = '/dev/tty';

/**
 * Questions on the controlling terminal, as ssh asks them: stdout may be a pipe and is not touched. null: there is none. A
 * host key is not decided on here; a script that answers yes to everything must not be able to.
 */
export function terminalAsker(): Asker | null {
	try {
		closeSync(openSync(TERMINAL, 'r+'));
	} catch {
		return null;
	}
	let before: Promise<unknown> = Promise.resolve();
	return {
		decidesHostKeys: false,
		ask(question, withdrawn) {
			const turn = before.then(() => askAll(question, withdrawn));
			before = turn;
			return turn;
		},
	};
}

async function askAll(question: Question, withdrawn?: AbortSignal): Promise<readonly string[] | null> {
	const terminal = openSync(TERMINAL, 'r+');
	const say = (text: string) => writeSync(terminal, text);
	const answers: string[] = [];
	try {
		if (question.kind === 'prompts')
			for (const line of [`${question.account} asks:`, question.title, ...question.instructions.split('\n')])
				if (line.trim() !== '') say(`${clean(line)}\r\n`);
		if ('again' in question && question.again) say('that was not it\r\n');
		for (const prompt of promptsOf(question)) {
			const answer = await readLine(`${clean(prompt.text).trim().replace(/:$/, '')}: `, prompt.echo, say, withdrawn);
			if (answer === null) return null;
			answers.push(answer);
		}
		return answers;
	} finally {
		closeSync(terminal);
	}
}

/** One line from a terminal that shows nothing of its own. Esc, Ctrl-C and Ctrl-D skip; Ctrl-C also ends the program. */
function readLine(
	prompt: string,
	echo: boolean,
	say: (text: string) => void,
	withdrawn?: AbortSignal,
): Promise<string | null> {
	const input = new ReadStream(openSync(TERMINAL, 'r'));
	input.setRawMode(true);
	// An end from elsewhere must not leave the terminal mute.
	const restore = () => input.setRawMode(false);
	process.once('exit', restore);
	say(prompt);
	let typed = '';
	return new Promise(resolve => {
		function end(answer: string | null) {
			process.removeListener('exit', restore);
			restore();
			input.destroy();
			say('\r\n');
			resolve(answer);
		}
		withdrawn?.addEventListener('abort', () => end(null), {once: true});
		input.on('error', () => end(null));
		input.on('data', chunk => {
			for (const character of chunk.toString()) {
				if (character === '\r' || character === '\n') return end(typed);
				if (character === '\u0003') {
					end(null);
					return void process.kill(process.pid, 'SIGINT');
				}
				if (character === '\u0004' || character === '\u001b') return end(null);
				if (character === '\u007f' || character === '\b') {
					if (echo && typed !== '') say('\b \b');
					typed = [...typed].slice(0, -1).join('');
				} else if (character >= ' ') {
					typed += character;
					if (echo) say(clean(character));
				}
			}
		});
	});
}
