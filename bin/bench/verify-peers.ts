import {spawnSync} from 'node:child_process';
import {bestOf, type Cost, has, least, pythonWith, say} from './cost.ts';

const TURNS = 3;
/** As for our own: many short turns, the best of which counts. The start of python is not counted. */
const SHORT_TURNS = 60;

/** `torch.load` of every file; and the same with mmap, which reads no data and came with torch 2.1. */
const TORCH = `
import sys, resource, time, torch
from inspect import signature
def cost(run):
    u = resource.getrusage(resource.RUSAGE_SELF); w = time.time()
    run()
    v = resource.getrusage(resource.RUSAGE_SELF)
    print((time.time() - w) * 1000, (v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime) * 1000)
paths = sys.argv[2:]
print(torch.__version__)
cost(lambda: [torch.load(path) for path in paths])
if 'mmap' in signature(torch.load).parameters:
    for _ in range(int(sys.argv[1])): cost(lambda: [torch.load(path, mmap=True) for path in paths])
`;

/** Costs of one look at all files by the programs that are here, by name; says which are not. */
export function verifyPeers(paths: readonly string[]): Map<string, Cost> {
	const found = new Map<string, Cost>();
	found.set('cat', bestOf(['sh', '-c', 'cat "$@" >/dev/null', 'sh', ...paths]));
	if (has('unzip'))
		found.set('unzip -t', bestOf(['sh', '-c', 'for f; do unzip -tqq "$f" || exit 1; done', 'sh', ...paths]));
	else say('unzip -t: not compared, no unzip here');
	const python = pythonWith('torch');
	if (!python) {
		say('torch.load: not compared, no python3 with torch here');
		return found;
	}
	const turns = Array.from({length: TURNS}, () => {
		const {stdout, stderr, status} = spawnSync(python, ['-c', TORCH, String(SHORT_TURNS), ...paths], {
			encoding: 'utf8',
		});
		if (status !== 0) throw new Error(`torch: ${stderr.trim().split('\n').at(-1)}`);
		const [version = '', ...lines] = stdout.trim().split('\n');
		const costs = lines.map(line => line.split(' ').map(Number)).map(([wallMs = 0, cpuMs = 0]) => ({wallMs, cpuMs}));
		return {version, load: costs[0] ?? {wallMs: 0, cpuMs: 0}, mapped: costs.slice(1)};
	});
	const mapped = turns.flatMap(turn => turn.mapped);
	found.set('torch.load', least(turns.map(({load}) => load)));
	if (mapped.length > 0) found.set('torch.load(mmap=True)', least(mapped));
	say(
		`torch ${turns[0]?.version}${mapped.length > 0 ? '' : '; torch.load(mmap=True): not compared, this torch has none'}`,
	);
	return found;
}
