import {spawnSync} from 'node:child_process';
import {type Cost, costOf, has, say, type Turn} from './cost.ts';
import {leastOf, output, pythonWith} from './python.ts';

export const catOf = (paths: readonly string[]): Turn => inShell('cat "$@" >/dev/null', paths);

export function unzipOf(paths: readonly string[]): Turn | null {
	if (has('unzip')) return inShell('for f; do unzip -tqq "$f" || exit 1; done', paths);
	say('unzip -t: not compared, no unzip here');
	return null;
}

const inShell =
	(script: string, paths: readonly string[]): Turn =>
	() =>
		costOf(['sh', '-c', script, 'sh', ...paths]);

const TESTZIP = `
import zipfile
turns(1, lambda: [zipfile.ZipFile(path).testzip() for path in sys.argv[1:]])
`;

export function testzipOf(paths: readonly string[]): Turn | null {
	const python = pythonWith('zipfile');
	if (python) return () => leastOf(python, [TESTZIP, ...paths]);
	say('zipfile.testzip: not compared, no python3 here');
	return null;
}

const LOAD = `
import torch
more = {'mmap': True} if sys.argv[1] == 'mmap' else {}
turns(sys.argv[2], lambda: [torch.load(path, **more) for path in sys.argv[3:]])
`;

/** What SpecForge asks of every tensor. It sees no infinity. */
const ISNAN = `
import torch
torch.set_num_threads(1)
states = torch.frombuffer(bytearray(open(sys.argv[1], 'rb').read()), dtype=torch.bfloat16)
turns(sys.argv[2], lambda: torch.any(torch.isnan(states)))
`;

const VERSION = `
import torch, inspect
print(torch.__version__, 'mmap' in inspect.signature(torch.load).parameters)
`;

/** Each gives the least of so many turns. */
export type Torch = {
	load(paths: readonly string[], turns: number): Cost;
	/** Reads no data; came with torch 2.1. */
	readonly mapped: ((paths: readonly string[], turns: number) => Cost) | null;
	/** Of a file of nothing but values of bf16, in one thread. */
	isnan(path: string, turns: number): Cost;
};

/** Says when it is not here. */
export function torchHere(): Torch | null {
	const python = pythonWith('torch');
	if (!python) {
		say('torch: not compared, no python3 with torch here');
		return null;
	}
	const [version, hasMap] = output(python, [VERSION]).split(' ');
	say(`torch ${version}${hasMap === 'True' ? '' : '; torch.load(mmap=True): not compared, this torch has none'}`);
	const load = (mode: string, paths: readonly string[], turns: number): Cost =>
		leastOf(python, [LOAD, mode, String(turns), ...paths]);
	return {
		load: (paths, turns) => load('load', paths, turns),
		mapped: hasMap === 'True' ? (paths, turns) => load('mmap', paths, turns) : null,
		isnan: (path, turns) => leastOf(python, [ISNAN, path, String(turns)]),
	};
}

/** Takes files out of the kernel's cache: `dd` can, nothing in Node can. */
export const cool = (paths: readonly string[]): void => {
	const script = 'for f; do dd of="$f" oflag=nocache conv=notrunc,fdatasync count=0 status=none || exit 1; done';
	const {status} = spawnSync('sh', ['-c', script, 'sh', ...paths]);
	if (status !== 0) throw new Error(`dd ended with ${status}`);
};
