import {existsSync} from 'node:fs';
import {basename} from 'node:path';
import {partBox} from './part-box.ts';

/** `python3` of the box: the model server, the HTTP helper, the extraction script. Words and statuses as CPython's. */
export async function runPython(argv: readonly string[]): Promise<number> {
	const words = argv.filter(word => word !== '-u' && word !== '-I' && word !== '-S' && word !== '-s');
	const [first = '', second = ''] = words;
	if (first === '--version' || first === '-V') return say('Python 3.11.2', 0);
	if (first === '-m') {
		if (second !== 'sglang.launch_server') return complain(`${partBox().paths.python}: No module named ${second}`, 1);
		const {runServer} = await import('./server.ts');
		return runServer(partBox(), words.slice(2));
	}
	if (first === '-') {
		const {runScript} = await import('./script.ts');
		return runScript(partBox, words.slice(1));
	}
	if (first.endsWith('.py')) {
		const {paths} = partBox();
		if (!existsSync(first)) {
			return complain(`${paths.python}: can't open file '${first}': [Errno 2] No such file or directory`, 2);
		}
		if (basename(first) !== basename(paths.script)) return complain(`${first}: nothing in a drill box runs this`, 1);
		const {runExtraction} = await import('./extraction.ts');
		return runExtraction(partBox(), words.slice(1));
	}
	return complain(`${first || 'python3'}: a drill box has no interpreter for this`, 1);
}

function say(text: string, code: number): number {
	process.stdout.write(`${text}\n`);
	return code;
}

function complain(text: string, code: number): number {
	process.stderr.write(`${text}\n`);
	return code;
}
