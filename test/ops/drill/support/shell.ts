import {spawn} from 'node:child_process';
import {closeSync, openSync} from 'node:fs';
import type {Box} from '../../../../src/ops/drill/box.ts';

export type Ran = {readonly code: number | null; readonly stdout: string; readonly stderr: string};

/** A script in a real sh, as a process of the box, with the environment that its routes set and nothing else. */
export function inBox({target, paths}: Box, script: string, limitMs = 20_000): Promise<Ran> {
	const {path, home, proc, dev, sys, etc} = target.routes[0]?.environment ?? Object.assign(Error('no route'));
	const leash = openSync(paths.leash, 'r');
	return new Promise(resolve => {
		const child = spawn('/bin/sh', ['-c', script], {
			env: {PATH: path, HOME: home, PROC: proc, DEV: dev, SYS: sys, ETC: etc, LC_ALL: 'C'},
			stdio: ['ignore', 'pipe', 'pipe', leash],
		});
		closeSync(leash);
		const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
		let stdout = '';
		let stderr = '';
		child.stdout?.on('data', piece => {
			stdout += piece;
		});
		child.stderr?.on('data', piece => {
			stderr += piece;
		});
		child.on('close', code => {
			clearTimeout(limit);
			resolve({code, stdout, stderr});
		});
	});
}

/** Asks until the answer is as wanted; fails with the last answer. */
export async function until<T>(ask: () => T | Promise<T>, wanted: (value: T) => boolean, limitMs = 10_000): Promise<T> {
	const end = Date.now() + limitMs;
	for (;;) {
		const value = await ask();
		if (wanted(value)) return value;
		if (Date.now() > end) throw new Error(`not in ${limitMs} ms; last: ${JSON.stringify(value)}`);
		await new Promise(resolve => setTimeout(resolve, 50));
	}
}
