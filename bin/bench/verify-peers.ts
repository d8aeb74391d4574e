import {type Cost, costOf, has, leastOf, output, pythonWith, say, type Turn} from './cost.ts';

/** Turns of `torch.load` of every file, or of the same with mmap, which reads no data. The start of python is not counted. */
const TORCH = `
import sys, resource, time, torch
mode, turns, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
for _ in range(turns):
    u = resource.getrusage(resource.RUSAGE_SELF); w = time.time()
    [torch.load(path, **({'mmap': True} if mode == 'mmap' else {})) for path in paths]
    v = resource.getrusage(resource.RUSAGE_SELF)
    print((time.time() - w) * 1000, (v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime) * 1000)
`;

const VERSION = `
import torch, inspect
print(torch.__version__, 'mmap' in inspect.signature(torch.load).parameters)
`;

export type Peers = {
	readonly cat: Turn;
	readonly unzip: Turn | null;
	readonly load: Turn | null;
	/** The least of so many short turns; came with torch 2.1. */
	readonly mapped: ((turns: number) => Cost) | null;
};

/** One look at all files by the programs that are here; says which are not. */
export function verifyPeers(paths: readonly string[]): Peers {
	const cat = () => costOf(['sh', '-c', 'cat "$@" >/dev/null', 'sh', ...paths]);
	const unzip = has('unzip')
		? () => costOf(['sh', '-c', 'for f; do unzip -tqq "$f" || exit 1; done', 'sh', ...paths])
		: null;
	if (!unzip) say('unzip -t: not compared, no unzip here');
	const python = pythonWith('torch');
	if (!python) {
		say('torch.load: not compared, no python3 with torch here');
		return {cat, unzip, load: null, mapped: null};
	}
	const torch = (mode: string, turns: number): Cost => leastOf(python, [TORCH, mode, String(turns), ...paths]);
	const [version, hasMap] = output(python, [VERSION]).split(' ');
	const map = hasMap === 'True';
	say(`torch ${version}${map ? '' : '; torch.load(mmap=True): not compared, this torch has none'}`);
	return {cat, unzip, load: () => torch('load', 1), mapped: map ? turns => torch('mmap', turns) : null};
}
