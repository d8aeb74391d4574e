import {existsSync, readdirSync} from 'node:fs';

/** Where the hook puts finished files: below the output, so that a rename brings them into place. */
export const stagingOf = (output: string): string => `${output}/.staging`;

/**
 * What lies there when a run begins: requests carry a random part, so nothing of it is for this run, and what the mask and
 * the sums of a file were by then is not known. Only to be asked under the lock.
 */
export function leftStaged(output: string): string[] {
	const staging = stagingOf(output);
	return existsSync(staging) ? readdirSync(staging).map(name => `${staging}/${name}`) : [];
}
