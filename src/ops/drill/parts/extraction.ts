import {extract} from '../../extract/extract.ts';
import {systemIo} from '../../extract/extract-io.ts';
import {type PartBox, whenLeashEnds} from './part-box.ts';

const VALUES = new Set(['--prepared-data', '--output-dir', '--server-url', '--dump-dir', '--max-seq-len', '--config']);

/** The extraction script of the box: the product's own extractor with the box's configuration. */
export async function runExtraction({paths, target}: PartBox, argv: readonly string[]): Promise<number> {
	const {extraction, server, dump} = target;
	if (!extraction || !server || !dump) throw new Error('the box has no extraction');
	for (let at = 0; at < argv.length; at += 2) {
		const word = argv[at] ?? '';
		if (VALUES.has(word.split('=')[0] ?? '')) {
			if (word.includes('=')) at--;
			continue;
		}
		process.stderr.write(
			`usage: 02b_extract_hidden_states_sglang.py [-h] --prepared-data PREPARED_DATA --output-dir OUTPUT_DIR\n`,
		);
		process.stderr.write(`02b_extract_hidden_states_sglang.py: error: unrecognized arguments: ${word}\n`);
		return 2;
	}
	whenLeashEnds(() => process.exit(1));
	return extract(
		{extraction, server, dump},
		systemIo({
			proc: paths.proc,
			tool: 'drill',
			// The incident's script knew no lock and no manifest: a run that was killed must not keep the next one out, and
			// its tree is there to be taken over.
			breakStaleLock: true,
			adopt: true,
			serverLimitMs: 120_000,
		}),
	);
}
