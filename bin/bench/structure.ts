import {mkdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {atLeast, atMost, best, type Cost, compared, cost, has, inTurn, say} from './cost.ts';
import {look, often} from './look.ts';
import {makeSamples, type Samples} from './samples.ts';
import {cool, type Torch} from './verify-peers.ts';

const LOOKS = 12;
const ROUNDS = 5;
/** Short turns, and many of them in each round: CPU time of one that others disturbed is up to twice as much. */
const SHORT_TURNS = 20;

/** Of files in memory, in one thread. */
export async function structure({paths, bytes}: Samples, torch: Torch | null): Promise<void> {
	const mapped = torch?.mapped;
	const costs = await compared(
		ROUNDS,
		bytes,
		{
			structure: async () => per(LOOKS, await best(() => look(often(paths, LOOKS), 'structure', 0), SHORT_TURNS)),
			...(mapped && {'torch.load(mmap=True)': () => mapped(paths, SHORT_TURNS)}),
			...(torch && {'torch.load': () => torch.load(paths, 1)}),
		},
		`least of ${ROUNDS} rounds`,
	);
	const {structure: own, 'torch.load(mmap=True)': map, 'torch.load': load} = costs;
	atMost('structure: CPU per file', (own.cpuMs / paths.length) * 1_000, 'µs', 60);
	atMost('structure: read per file', (await bytesRead(paths)) / paths.length / 1_000, 'KB', 10);
	if (map) atLeast('structure: times as fast as torch.load(mmap=True), CPU', map.cpuMs / own.cpuMs, 'x', 4, '5');
	if (load) atLeast('structure: times as fast as torch.load, CPU', load.cpuMs / own.cpuMs, 'x', 2_000);
}

const per = (looks: number, {wallMs, cpuMs}: Cost): Cost => ({wallMs: wallMs / looks, cpuMs: cpuMs / looks});

/** All that this process reads meanwhile, as the kernel counts it. */
async function bytesRead(paths: readonly string[]): Promise<number> {
	const read = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
	const before = read();
	await look(paths, 'structure', 0);
	return read() - before;
}

/** So many that the start of threads, once per run, counts for little; small ones, for what is between head and tail is not read. */
const COLD_FILES = 4_000;
const COLD_TOKENS = 128;
const COLD_WIDTH = 1_024;
const COLD_ROUNDS = 3;

/** From the disk: what it gives to several threads at once is the point, so four are more than two on two cores. */
export async function structureCold(folder: string, torch: Torch | null): Promise<void> {
	const mapped = torch?.mapped;
	if (!has('dd') || !mapped) return say('structure, cold: not compared, it takes dd and a torch.load with mmap');
	const place = join(folder, 'small');
	mkdirSync(place);
	const {paths, bytes} = makeSamples(place, COLD_FILES, COLD_TOKENS, COLD_WIDTH);
	const cold = (workers: number) => () => {
		cool(paths);
		return cost(() => look(paths, 'structure', workers));
	};
	const costs = await inTurn(COLD_ROUNDS, {
		'2 workers': cold(2),
		'4 workers': cold(4),
		'torch.load(mmap=True)': () => {
			cool(paths);
			return mapped(paths, 1);
		},
	});
	say(`${COLD_FILES} files of ${(bytes / COLD_FILES / 1e6).toFixed(1)} MB, cold, files per second`);
	for (const [name, {wallMs}] of Object.entries<Cost>(costs))
		say(`${name.padEnd(45)}${((COLD_FILES / wallMs) * 1_000).toFixed(0).padStart(8)}  least of ${COLD_ROUNDS}`);
	const {'4 workers': four, 'torch.load(mmap=True)': map} = costs;
	atLeast('structure cold, 4 workers: of torch.load(mmap=True), wall', map.wallMs / four.wallMs, 'x', 1.8);
}
