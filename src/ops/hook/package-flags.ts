import {type Facts, fresh} from '../facts.ts';
import type {ImportedPackage} from './look.ts';

/** Which package was asked for its flags: a new version, or another place, is another package. */
export const packageKey = ({directory, version}: Pick<ImportedPackage, 'directory' | 'version'>): string =>
	`${directory} ${version ?? ''}`.trim();

/** An option in the help that argparse prints: indented a little, its names before the text. */
const OPTION = /^ {1,4}(-.*)$/;
const NAME = /(?:^|\s|,)(--[a-z0-9][a-z0-9-]*)/g;

/** The flags of a help text, sorted; null when it is not that of a model server. Names inside descriptions do not count. */
export function flagsInHelp(text: string): readonly string[] | null {
	const options = text.split('\n').flatMap(line => OPTION.exec(line)?.[1]?.split(/ {2,}/)[0] ?? []);
	const found = new Set(options.flatMap(option => [...option.matchAll(NAME)].map(([, name = '']) => name)));
	return found.has('--model-path') ? [...found].sort() : null;
}

/** The package that a launch would import, as far as it is known; its flags from its source, else from its own help. */
export function importedPackage(facts: Facts): ImportedPackage | null {
	const hook = fresh(facts.files)?.hook;
	const found = hook?.state === 'seen' ? hook.facts.sglang : null;
	if (!found || found.flags) return found;
	const asked = fresh(facts.flags);
	return asked?.key === packageKey(found) ? {...found, flags: asked.flags} : found;
}

/** Why the flags of a launch cannot be checked, in words; null when they can, or nothing would be imported. */
export function flagsUnchecked(facts: Facts): string | null {
	const found = importedPackage(facts);
	if (!found || found.flags) return null;
	const asked = fresh(facts.flags);
	return asked?.key === packageKey(found) ? asked.why : 'its source does not tell, and its help has not been asked yet';
}
