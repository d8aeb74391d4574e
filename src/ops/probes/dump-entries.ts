import type {ExtractionFacts} from './extraction.ts';

/**
 * Requests of a dump directory from lines `TYPE SIZE TIME req_NAME[/FILE]`, then find's status: bytes are those of the files in
 * each. A directory that is not there holds none; one that does not answer is null.
 */
export function readDumps(text: string): ExtractionFacts['dumps'] {
	const lines = text.trim().split('\n');
	const status = lines.pop();
	if (status === '124' || status === '137') return null;
	const entries = new Map<string, {name: string; modifiedAt: number; bytes: number}>();
	for (const line of lines) {
		const match = /^(.) (\d+) ([\d.]+) (req_[^/]*)(\/.*)?$/.exec(line);
		if (!match) continue;
		const [, type, size = '', time = '', name = '', below] = match;
		const entry = entries.get(name) ?? {name, modifiedAt: 0, bytes: 0};
		if (below === undefined) entry.modifiedAt = Math.round(Number(time) * 1000);
		/** A directory's own size says nothing about what is in it. */
		if (type === 'f') entry.bytes += Number(size);
		entries.set(name, entry);
	}
	return [...entries.values()];
}
