import {mkdirSync} from 'node:fs';
import {resolve} from 'node:path';
import {sameFileSystem} from './adopt.ts';
import type {DumpsTold} from './client.ts';
import {DumpWatch} from './dump-watch.ts';
import {countedDumps, type DumpSource} from './dumps.ts';
import type {FinalNorm} from './final-norm.ts';
import {Refusal} from './manifest.ts';
import {namedDumps} from './named-dumps.ts';
import {stagedDumps} from './staged-dumps.ts';
import {stagingOf} from './staging.ts';

export type SourcePlace = {readonly dumps: string; readonly limitMs: number; readonly output: string};

/** How the dumps of a server are found, by what it says of itself. Throws Refusal for those that are not read here. */
export function sourceOf(told: DumpsTold, {dumps: dir, limitMs, output}: SourcePlace, norm: FinalNorm): DumpSource {
	const watched = (...directories: string[]) => ({dir, limitMs, watch: new DumpWatch(directories)});
	if (told.dumps === 'nameless')
		throw new Refusal(
			"the server's hook makes nameless dumps, which the extractor does not read: launch it for named ones",
		);
	if (told.dumps === 'counted') return countedDumps(watched(dir));
	if (told.dumps === 'named') return namedDumps(watched(dir), norm);
	const own = stagingOf(output);
	if (told.staging === null || resolve(told.staging) !== resolve(own))
		throw new Refusal(`the server's hook stages files in ${told.staging}, and this run adopts them from ${own}`);
	mkdirSync(own, {recursive: true});
	if (!sameFileSystem(own, output))
		throw new Refusal(
			`${own} lies on another file system than ${output}: staged files cannot be renamed into place; launch the server with raw dumps`,
		);
	return stagedDumps(watched(dir, own), own, norm);
}
