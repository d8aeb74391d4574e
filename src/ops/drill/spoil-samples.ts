import {readFileSync, statSync, utimesSync, writeFileSync} from 'node:fs';
import type {BoxPaths} from './paths.ts';
import type {Random} from './random.ts';
import type {Dimensions} from './records.ts';

const MOST = 6;
const PAGE = 4_096;

/**
 * Spoils whole samples of the last group: of every second one a page is zeros, as after a crash that the file's size
 * survived, of the others one bit is another. Size, time and end record stay. Their indices go into `spoilt`.
 */
export function spoilSamples(
	paths: BoxPaths,
	{groupSize, lastGroup, holes, truncated}: Dimensions,
	random: Random,
	spoilt: Set<number>,
): void {
	const from = 9 * groupSize;
	const whole = Array.from({length: lastGroup}, (_, at) => from + at).filter(
		index => !holes.includes(index) && !truncated.includes(index),
	);
	for (const [turn, index] of whole.slice(-MOST).entries()) {
		const path = `${paths.output}/rows_${from}-${from + groupSize}/data_${index}.pt`;
		const {atimeMs, mtimeMs} = statSync(path);
		const content = readFileSync(path);
		// The states are most of a file: between its first and its last quarter there is nothing else.
		const [first, last] = [Math.floor(content.length / 4), Math.floor((content.length * 3) / 4)];
		const at = random.whole(first, last);
		if (turn % 2 === 0) content.fill(0, Math.min(at, last - Math.min(PAGE, last - first)), Math.min(at + PAGE, last));
		else content.writeUInt8(content.readUInt8(at) ^ (1 << random.whole(0, 8)), at);
		writeFileSync(path, content);
		utimesSync(path, atimeMs / 1_000, mtimeMs / 1_000);
		spoilt.add(index);
	}
}
