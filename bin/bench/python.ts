import {spawnSync} from 'node:child_process';
import {type Cost, least} from './cost.ts';

/** A python that can import these, RELIGHT_TORCH_PYTHON before others; null where there is none. */
export const pythonWith = (module: string): string | null =>
	[process.env.RELIGHT_TORCH_PYTHON ?? 'python3', 'python3', '/usr/bin/python3'].find(
		each => spawnSync(each, ['-c', `import ${module}`]).status === 0,
	) ?? null;

/** What a program in Python prints. */
export function output(python: string, program: readonly string[], env: NodeJS.ProcessEnv = {}): string {
	const {stdout, stderr, status} = spawnSync(python, ['-c', ...program], {
		encoding: 'utf8',
		env: {...process.env, ...env},
	});
	if (status !== 0) throw new Error(`${python}: ${stderr.trim().split('\n').at(-1)}`);
	return stdout.trim();
}

/** `turns(count, run)` prints wall and CPU of each turn, ms. What is done `before` one is not counted, nor the start of Python. */
const TURNS = `
import os, sys, resource, time
def turns(count, run, before=lambda: None):
    for _ in range(int(count)):
        before()
        u = resource.getrusage(resource.RUSAGE_SELF); w = time.time()
        run()
        v = resource.getrusage(resource.RUSAGE_SELF)
        print((time.time() - w) * 1000, (v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime) * 1000)
def away(path):
    if os.path.exists(path): os.remove(path)
`;

/** Of a program that takes its \`turns\`. */
export function leastOf(python: string, [text = '', ...argv]: readonly string[], env: NodeJS.ProcessEnv = {}): Cost {
	const lines = output(python, [TURNS + text, ...argv], env).split('\n');
	const costs = lines.map(line => line.split(' ').map(Number));
	return least(costs.map(([wallMs = Number.NaN, cpuMs = Number.NaN]) => ({wallMs, cpuMs})));
}
