import {closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {namedSamples} from '../../src/ops/extract/listing.ts';
import {atLeast, atMost, type Cost, cost, costOf, inTurn, say} from './cost.ts';
import {leastOf, pythonWith} from './python.ts';

const GROUP = 2_000;
const ROUNDS = 5;
const LIMITS_MS = new Map([
	[37_312, 30],
	[1_000_000, 500],
]);

/** A larger tree tells the same, half a minute a turn. */
const MOST_RESUMED = 100_000;

/** In four threads, as SpecForge does. */
const RESUME = `
import concurrent.futures
output, files, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def there(index):
    start = index // group * group
    return os.path.exists(os.path.join(output, 'rows_%d-%d' % (start, start + group), 'data_%d.pt' % index))
def resume():
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        return list(threads.map(there, range(files)))
turns(1, resume)
`;

/** Which samples of a tree have a file, beside `find | wc -l` on the same tree in the same run; names in the kernel's cache. */
export async function scan(argv: readonly string[]): Promise<void> {
	const sizes = argv.length > 0 ? argv.map(Number) : [37_312, 1_000_000];
	for (const files of sizes) {
		const output = mkdtempSync(join(tmpdir(), 'relight-bench-scan-'));
		try {
			makeTree(output, files);
			await compare(output, files);
		} finally {
			rmSync(output, {recursive: true, force: true});
		}
	}
}

async function compare(output: string, files: number): Promise<void> {
	const python = files > MOST_RESUMED ? null : pythonWith('concurrent.futures');
	const {own, find, each, resume} = await inTurn(ROUNDS, {
		own: () => cost(() => requireAll(files, namedSamples(output, files))),
		find: () => costOf(['sh', '-c', `find '${output}' -type f | wc -l >/dev/null`]),
		each: () => cost(() => requireAll(files, existing(output, files))),
		...(python && {resume: () => leastOf(python, [RESUME, output, String(files), String(GROUP)])}),
	});
	const words = ({wallMs, cpuMs}: Cost): string => `${wallMs.toFixed(0)} ms (${cpuMs.toFixed(0)} CPU)`;
	say(`${files} files: relight ${words(own)}, find | wc -l ${words(find)}, existsSync of each ${words(each)}`);
	atMost('  inventory: CPU time of find | wc -l', own.cpuMs / find.cpuMs, 'x', 1.3, '1.1');
	atMost('  inventory: wall time of find | wc -l', own.wallMs / find.wallMs, 'x', 1.3, '1.1');
	const limitMs = LIMITS_MS.get(files);
	if (limitMs !== undefined) atMost('  inventory: wall time', own.wallMs, 'ms', limitMs);
	if (files > MOST_RESUMED) return;
	if (!resume) return say('  os.path.exists of each: not compared, no python3 here');
	say(`  os.path.exists of each, as SpecForge resumes: ${words(resume)}`);
	atLeast('  inventory: times as fast as os.path.exists, wall', resume.wallMs / own.wallMs, 'x', 20);
}

function requireAll(files: number, named: Uint8Array): void {
	const seen = named.reduce((sum, one) => sum + one, 0);
	if (seen !== files) throw new Error(`${seen} of ${files} files were seen`);
}

const pathOf = (output: string, index: number): string => {
	const from = index - (index % GROUP);
	return `${output}/rows_${from}-${from + GROUP}/data_${index}.pt`;
};

const existing = (output: string, files: number): Uint8Array =>
	Uint8Array.from({length: files}, (_, index) => (existsSync(pathOf(output, index)) ? 1 : 0));

function makeTree(output: string, files: number): void {
	for (let from = 0; from < files; from += GROUP) {
		const directory = `${output}/rows_${from}-${from + GROUP}`;
		mkdirSync(directory);
		for (let index = from; index < Math.min(files, from + GROUP); index++)
			closeSync(openSync(pathOf(output, index), 'w'));
	}
}
