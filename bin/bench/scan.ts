import {closeSync, mkdirSync, mkdtempSync, openSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {namedSamples} from '../../src/ops/extract/listing.ts';
import {atMost, best, bestOf, say} from './cost.ts';

const GROUP = 2_000;
const TURNS = 5;

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
	let seen = 0;
	const own = await best(() => {
		seen = namedSamples(output, files).reduce((sum, one) => sum + one, 0);
	}, TURNS);
	if (seen !== files) throw new Error(`${seen} of ${files} files were seen`);
	const find = bestOf(['sh', '-c', `find '${output}' -type f | wc -l >/dev/null`], TURNS);
	say(
		`${files} files: relight ${own.wallMs.toFixed(0)} ms (${own.cpuMs.toFixed(0)} CPU), find | wc -l ${find.wallMs.toFixed(0)} ms (${find.cpuMs.toFixed(0)} CPU)`,
	);
	atMost(`  inventory: CPU time of find | wc -l`, own.cpuMs / find.cpuMs, 'x', 1.3, '1.1');
	atMost(`  inventory: wall time of find | wc -l`, own.wallMs / find.wallMs, 'x', 1.3, '1.1');
}

function makeTree(output: string, files: number): void {
	for (let from = 0; from < files; from += GROUP) {
		const directory = `${output}/rows_${from}-${from + GROUP}`;
		mkdirSync(directory);
		for (let index = from; index < Math.min(files, from + GROUP); index++)
			closeSync(openSync(`${directory}/data_${index}.pt`, 'w'));
	}
}
