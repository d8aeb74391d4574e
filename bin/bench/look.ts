import {checkFiles} from '../../src/ops/verify/pool.ts';
import type {Level} from '../../src/ops/verify/verdict.ts';

/** Looks at files that must all be done. */
export async function look(paths: readonly string[], level: Level, workers: number): Promise<void> {
	let wrong = 0;
	await checkFiles(paths, {level, hidden: null, normWeight: null}, workers, ({verdict}) => {
		if (verdict.verdict !== 'done') wrong++;
	});
	if (wrong > 0) throw new Error(`${wrong} of the bench's own files are not done`);
}

/** So many looks at each file. */
export const often = (paths: readonly string[], looks: number): string[] =>
	Array.from({length: looks}, () => paths).flat();
