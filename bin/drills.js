// Random drills by the dozen, two at a time: `npm run drills -- [COUNT] [FIRST SEED]`; `named` instead of a count runs every
// scenario of the table. One line a drill; what was not begun when it is interrupted counts as skipped.
import {spawn} from 'node:child_process';
import {createInterface} from 'node:readline';

const PROGRAM = 'dist/relight.js';
const AT_ONCE = 2;
/** No drill takes as long; one that does has failed. */
const LIMIT_MS = 10 * 60_000;

const [count = '30', first = '1'] = process.argv.slice(2);
const todo =
	count === 'named'
		? (await names()).map(name => [name])
		: Array.from({length: Number(count)}, (_, at) => ['random', '--seed', String(Number(first) + at)]);
const total = todo.length;
const tally = {passed: 0, failed: 0};
const running = new Set();
let interrupted = false;
process.once('SIGINT', () => {
	interrupted = true;
	todo.length = 0;
	for (const child of running) child.kill('SIGINT');
});

await Promise.all(Array.from({length: AT_ONCE}, work));
console.log(`${tally.passed} passed, ${tally.failed} failed, ${total - tally.passed - tally.failed} skipped`);
process.exit(tally.failed > 0 || tally.passed === 0 ? 1 : 0);

async function work() {
	for (let words = todo.shift(); words; words = todo.shift()) {
		const {code, out, said} = await run(words);
		// A terminal sends its signal to the drills, too: the second one ends them without a word.
		if (code === 130 || (interrupted && out === '')) continue;
		const passed = code === 0;
		tally[passed ? 'passed' : 'failed']++;
		console.log(`${passed ? 'passed' : 'FAILED'} ${words.join(' ')}: ${inWords(out)}`);
		if (!passed) console.log(said.trimEnd().replaceAll(/^/gm, '    '));
	}
}

function inWords(out) {
	try {
		const {faults, outcome, seconds, objection, because} = JSON.parse(out);
		const end = [`${outcome} in ${seconds} s`, objection, because].filter(Boolean).join('; ');
		return `${faults.join(' + ') || 'no fault'}: ${end}`;
	} catch {
		return 'it did not say how it ended';
	}
}

function run(words) {
	return new Promise(resolve => {
		const child = spawn(process.execPath, [PROGRAM, 'drill', ...words, '--unattended', '--json'], {
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		running.add(child);
		const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
		let [out, said] = ['', ''];
		child.stdout.on('data', piece => {
			out += piece;
		});
		child.stderr.on('data', piece => {
			said += piece;
		});
		child.on('close', code => {
			running.delete(child);
			clearTimeout(limit);
			resolve({code, out, said});
		});
	});
}

async function names() {
	const child = spawn(process.execPath, [PROGRAM, 'drill', '--list'], {stdio: ['ignore', 'pipe', 'inherit']});
	const found = [];
	for await (const line of createInterface({input: child.stdout})) found.push(line.split(' ')[0]);
	return found.filter(name => name !== 'random');
}
