import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import type {BuiltExtractor, Executable, Target} from '../src/ops/target.ts';

const NOTE = /^relight-extractor-linux-(\w+)\.json$/;

/** The extractor that was built beside this program, for hosts that have none. */
export function withBuilt(target: Target): Target {
	const built = builtIn(import.meta.dirname);
	return target.extraction && built ? {...target, extraction: {...target.extraction, built}} : target;
}

/** null where there is no build. The note beside an executable has its sum: to read it all would hold up the first frame. */
export function builtIn(directory: string): BuiltExtractor | null {
	const bundle = join(directory, 'extractor.mjs');
	if (!existsSync(bundle)) return null;
	const executables = readdirSync(directory).flatMap(name => {
		const architecture = NOTE.exec(name)?.[1];
		return architecture === undefined ? [] : executableOf(directory, name, architecture);
	});
	return {here: `${process.platform}-${process.arch}`, bundle, executables};
}

function executableOf(directory: string, note: string, architecture: string): readonly Executable[] {
	const source = join(directory, note.slice(0, -'.json'.length));
	if (!existsSync(source)) return [];
	const {bytes, sha256}: Pick<Executable, 'bytes' | 'sha256'> = JSON.parse(readFileSync(join(directory, note), 'utf8'));
	return [{architecture, source, bytes, sha256}];
}
