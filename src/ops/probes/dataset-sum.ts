import {quote} from '../command.ts';
import {manifestPath} from '../extract/manifest-path.ts';
import type {ExtractionConfig} from '../target.ts';
import {capture} from './capture.ts';

/** Whether the dataset is the one that it must be: its sum where one is known to hold it against, else its records. */
export type DatasetFacts = {
	/** Size, time and inode: while they stay the same nothing is read again. */
	readonly seal: string;
	/** The sum that the run began with, by its manifest; null: no run yet, or it does not say. */
	readonly begunWith: string | null;
	/** null: not read, for nothing asks for it or it took too long. */
	readonly sha256: string | null;
	/** As `sha256`. */
	readonly records: number | null;
};

/** Seconds for one pass over the file; gigabytes from a page cache, hundreds of megabytes from a disk. */
const READ_S = 6;
/** Every record has it once. Inside a string its quotes would be escaped. */
const RECORD_KEY = `'"input_ids"[[:space:]]*:'`;

/**
 * Shell function `d`, without arguments. Records are counted by the key that each must have, one object a line, so that
 * a file of a single line is not held in memory. Source: coreutils, grep.
 */
export function defineDataset(extraction: ExtractionConfig, last: DatasetFacts | null): string {
	const {dataset, output, records, sha256} = extraction;
	const path = quote(dataset);
	const seals = (known: unknown) => quote(known !== null && known !== undefined ? (last?.seal ?? '') : '');
	const unpack = dataset.endsWith('.gz') ? 'gzip -dc' : 'cat';
	const count = `{ { timeout -k 1 ${READ_S} ${unpack} <${path}; pr "E $?" >&3; } | tr '{' '\\n' | pr "C $(grep -ac ${RECORD_KEY})"; } 3>&1`;
	return [
		`d() { ${capture('l', 2, `stat -L --printf %s-%.9Y-%i -- ${path}`)}; pr "D $r $l"; [ $r = 0 ] || return`,
		`g=$(timeout -k 1 2 grep -o '"dataset.sha256": *"[0-9a-f]*"' ${quote(manifestPath(output))}); g=\${g%\\"}; pr "G \${g##*\\"}"`,
		`if [ -n "\${g}${sha256 ?? ''}" ]; then [ "$l" = ${seals(last?.sha256)} ] || { o=$(timeout -k 1 ${READ_S} sha256sum <${path}); pr "H $? \${o%% *}"; }`,
		records === null ? '' : `elif [ "$l" != ${seals(last?.records)} ]; then ${count}`,
		'fi; }',
	].join('\n');
}

/** null: the file gave no answer, or is not there. */
export function parseDataset(lines: readonly string[], last: DatasetFacts | null): DatasetFacts | null {
	const [, status, seal = ''] = lines.find(line => line.startsWith('D '))?.split(' ') ?? [];
	if (status !== '0') return null;
	const before = last?.seal === seal ? last : null;
	const begunWith = lines.find(line => /^G [0-9a-f]{64}$/.test(line))?.slice(2) ?? null;
	const sum = lines.find(line => /^H 0 [0-9a-f]{64}$/.test(line))?.slice(4) ?? before?.sha256 ?? null;
	const whole = lines.includes('E 0');
	const count = whole ? lines.find(line => /^C \d+$/.test(line))?.slice(2) : undefined;
	return {seal, begunWith, sha256: sum, records: count === undefined ? (before?.records ?? null) : Number(count)};
}
