import {spawn} from 'node:child_process';
import {chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {quote} from '../../../src/ops/command.ts';
import {type Answer, type Hints, NO_HINTS, type Probe, type ProbeContext} from '../../../src/ops/probes/probe.ts';
import type {Target} from '../../../src/ops/target.ts';

export const NOW_MS = 1_767_225_600_000;

export const TARGET: Target = {
	name: 'ct129',
	routes: [],
	expect: {gpus: null, mounts: []},
	unwanted: [],
	server: null,
	dump: null,
	extraction: null,
	files: [],
};

export const HINTS: Hints = {...NO_HINTS, nowMs: NOW_MS};

export function contextOf<T>(
	parts: {target?: Partial<Target>; hints?: Partial<Hints>; last?: T | null} = {},
): ProbeContext<T> {
	return {target: {...TARGET, ...parts.target}, hints: {...HINTS, ...parts.hints}, last: parts.last ?? null};
}

export const fixture = (path: string): string =>
	readFileSync(join(import.meta.dirname, '../../fixtures', path), 'utf8');

/** An answer as a script would give it: sections in order. */
export function answerOf(sections: Readonly<Record<string, string>>, status = 0): Answer {
	const stdout = Object.entries(sections)
		.map(([name, body]) => `\n@@ relight section ${name}\n${body}`)
		.join('');
	return {status, stdout, stderr: '', bytes: Buffer.from(stdout)};
}

/** Roots and PATH as a route sets them. */
export type Roots = {proc?: string; dev?: string; sys?: string; etc?: string; path?: string; home?: string};

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Runs a script the way a lane does: a bare `sh`, nothing of our environment, `eval` in a subshell, no input. */
export function runScript(script: string, roots: Roots = {}): Promise<Answer> {
	const {proc = '/proc', dev = '/dev', sys = '/sys', etc = '/etc', path = PATH, home = '/root'} = roots;
	const env = {PATH: path, LC_ALL: 'C', HOME: home, PROC: proc, DEV: dev, SYS: sys, ETC: etc};
	return new Promise((resolve, reject) => {
		const child = spawn('/bin/sh', [], {cwd: '/', env, stdio: 'pipe'});
		const out: Buffer[] = [];
		const err: Buffer[] = [];
		child.stdout.on('data', chunk => out.push(chunk));
		child.stderr.on('data', chunk => err.push(chunk));
		child.on('error', reject);
		child.on('close', code => {
			const bytes = Buffer.concat(out);
			resolve({
				status: code ?? -1,
				stdout: bytes.toString('utf8'),
				stderr: Buffer.concat(err).toString('utf8'),
				bytes,
			});
		});
		child.stdin.end(`( eval ${quote(script)} ) </dev/null\n`);
	});
}

/** Script, run, parse: one look for real. */
export async function look<T>(probe: Probe<T>, context: ProbeContext<T>, roots: Roots = {}): Promise<T> {
	const script = probe.script(context);
	if (script === null) throw new Error(`${probe.id} has nothing to ask`);
	return probe.parse(await runScript(script, roots), context);
}

/** A directory of small files for one test; programs below `bin/` are executable. */
export function makeTree(files: Readonly<Record<string, string | Buffer>>): {root: string; remove: () => void} {
	const root = mkdtempSync(join(tmpdir(), 'relight-probe-'));
	for (const [name, text] of Object.entries(files)) {
		const path = join(root, name);
		mkdirSync(dirname(path), {recursive: true});
		writeFileSync(path, text);
		if (name.startsWith('bin/')) chmodSync(path, 0o755);
	}
	return {root, remove: () => rmSync(root, {recursive: true, force: true})};
}

/** PATH with the tree's own programs in front. */
export const pathWith = (root: string): string => `${root}/bin:${PATH}`;
