import {existsSync, readdirSync} from 'node:fs';
import {sampleIndex} from '../verify/names.ts';

/**
 * Names of all that lies where samples lie: in the output itself, and in each of its groups. One look per directory and
 * none per file, so that a tree of a million takes about as long as `find`. No output is an empty one.
 */
export function eachDirectory(output: string, each: (names: readonly string[], directory: string) => void): void {
	if (!existsSync(output)) return;
	const entries = readdirSync(output, {withFileTypes: true});
	each(
		entries.flatMap(entry => (entry.isDirectory() ? [] : [entry.name])),
		output,
	);
	for (const entry of entries) {
		if (!entry.isDirectory() || !entry.name.startsWith('rows_')) continue;
		const directory = `${output}/${entry.name}`;
		each(readdirSync(directory), directory);
	}
}

/** 1 for each of `records` indices that has a file of its name, of whatever layout and worth. */
export function namedSamples(output: string, records: number): Uint8Array {
	const named = new Uint8Array(records);
	eachDirectory(output, names => {
		for (const name of names) {
			const index = sampleIndex(name);
			if (index !== null && index < records) named[index] = 1;
		}
	});
	return named;
}
