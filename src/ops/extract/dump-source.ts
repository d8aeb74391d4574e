import {mkdirSync} from 'node:fs';
import {resolve} from 'node:path';
import {sameFileSystem} from './adopt.ts';
import type {DumpsTold} from './client.ts';
import {countedDumps, type DumpPlace, type DumpSource} from './dumps.ts';
import type {FinalNorm} from './final-norm.ts';
import {Refusal} from './manifest.ts';
import {namedDumps} from './named-dumps.ts';
import {stagedDumps} from './staged-dumps.ts';
import {stagingOf} from './staging.ts';

/** How the dumps of a server are found, by what it says of itself. Throws Refusal for those that are not read here. */
export function sourceOf({dumps, staging}: DumpsTold, place: DumpPlace, output: string, norm: FinalNorm): DumpSource {
	if (dumps === 'nameless')
		throw new Refusal(
			"the server's hook makes nameless dumps, which the extractor does not read: launch it for named ones",
		);
	if (dumps === 'counted') return countedDumps(place);
	if (dumps === 'named') return namedDumps(place);
	const own = stagingOf(output);
	if (staging === null || resolve(staging) !== resolve(own))
		throw new Refusal(`the server's hook stages files in ${staging}, and this run adopts them from ${own}`);
	mkdirSync(own, {recursive: true});
	if (!sameFileSystem(own, output))
		throw new Refusal(
			`${own} lies on another file system than ${output}: staged files cannot be renamed into place; launch the server with raw dumps`,
		);
	return stagedDumps(place, own, norm);
}
