import {spawnSync} from 'node:child_process';
import {bestOf, type Cost, has, least, pythonWith, say} from './cost.ts';

const TURNS = 3;
/** As for our own: many short turns, the best of which counts. The start of python is not counted. */
const SHORT_TURNS = 60;

/**
 * `torch.load` of every file; and the same with mmap, which reads no data. torch before 2.1 has no mmap: there its own code
 * runs with a reader that gives it a slice of a mapped file for each storage, without looking up where it lies.
 */
const TORCH = `
import sys, os, resource, time, torch
from inspect import signature
def cost(run):
    u = resource.getrusage(resource.RUSAGE_SELF); w = time.time()
    run()
    v = resource.getrusage(resource.RUSAGE_SELF)
    print((time.time() - w) * 1000, (v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime) * 1000)
class Slice:
    def __init__(self, storage): self.held = storage
    def storage(self): return self
    def untyped(self): return self.held
class Mapped:
    def __init__(self, reader, path):
        self.get_record, self.get_all_records = reader.get_record, reader.get_all_records
        self.whole = torch.UntypedStorage.from_file(path, False, os.path.getsize(path))
    def get_storage_from_record(self, name, size, kind): return Slice(self.whole[0:size])
plain = torch.serialization._open_zipfile_reader
class Opened:
    def __init__(self, file): self.reader = Mapped(torch._C.PyTorchFileReader(file), file.name)
    def __enter__(self): return self.reader
    def __exit__(self, *error): pass
if 'mmap' in signature(torch.load).parameters: mapped = lambda path: torch.load(path, mmap=True)
else:
    def mapped(path):
        torch.serialization._open_zipfile_reader = Opened
        try: return torch.load(path)
        finally: torch.serialization._open_zipfile_reader = plain
paths = sys.argv[2:]
cost(lambda: [torch.load(path) for path in paths])
for _ in range(int(sys.argv[1])): cost(lambda: [mapped(path) for path in paths])
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
		return stdout
			.trim()
			.split('\n')
			.map(line => line.split(' ').map(Number))
			.map(([wallMs = 0, cpuMs = 0]) => ({wallMs, cpuMs}));
	});
	const none = {wallMs: 0, cpuMs: 0};
	found.set('torch.load', least(turns.map(([load = none]) => load)));
	found.set('torch.load(mmap=True)', least(turns.flatMap(([, ...mapped]) => mapped)));
	return found;
}
