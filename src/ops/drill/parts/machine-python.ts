import {spawn, spawnSync} from 'node:child_process';
import {existsSync, readFileSync, renameSync, writeFileSync} from 'node:fs';
import type {PartBox} from './part-box.ts';

/** The machine's own Python: what runs a script of the console as it stands, and, with a torch, the hook itself. */
export type MachinePython = {readonly path: string; readonly torch: string | null};

const ASK = `import importlib.metadata, importlib.util
print(importlib.metadata.version("torch") if importlib.util.find_spec("torch") else "")`;
const ASK_LIMIT_MS = 5_000;

/** Looked for once a box: the first with a torch, else the first that runs. null: there is none, or the box shall have none. */
export function machinePython({paths, searchPath}: PartBox): MachinePython | null {
	const note = `${paths.run}/machine-python.json`;
	if (existsSync(note)) return JSON.parse(readFileSync(note, 'utf8'));
	const found = search(searchPath);
	const temporary = `${note}.${process.pid}`;
	writeFileSync(temporary, JSON.stringify(found));
	renameSync(temporary, note);
	return found;
}

function search(searchPath: readonly string[]): MachinePython | null {
	let first: MachinePython | null = null;
	for (const directory of new Set(searchPath)) {
		const path = `${directory}/python3`;
		if (!directory.startsWith('/') || !existsSync(path)) continue;
		const asked = spawnSync(path, ['-I', '-c', ASK], {stdio: ['ignore', 'pipe', 'ignore', 3], timeout: ASK_LIMIT_MS});
		if (asked.status !== 0) continue;
		const found = {path, torch: asked.stdout.toString().trim() || null};
		if (found.torch !== null) return found;
		first ??= found;
	}
	return first;
}

/**
 * Runs a script that came on standard input, as a process of the box. The box's sglang is on the path, as an editable
 * install would put it there.
 */
export function runByMachine({path}: MachinePython, {paths}: PartBox, script: string, argv: readonly string[]) {
	const own = process.env.PYTHONPATH?.split(':').filter(Boolean) ?? [];
	const env = {...process.env, PYTHONPATH: [...own, `${paths.tree}/python`].join(':'), PYTHONDONTWRITEBYTECODE: '1'};
	return new Promise<number>(resolve => {
		const child = spawn(path, ['-', ...argv], {env, stdio: ['pipe', 'inherit', 'inherit', 3]});
		child.on('error', error => {
			process.stderr.write(`${path}: ${error.message}\n`);
			resolve(126);
		});
		child.on('close', code => resolve(code ?? 1));
		child.stdin?.on('error', () => {});
		child.stdin?.end(script);
	});
}
