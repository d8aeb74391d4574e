import {statSync} from 'node:fs';
import {dirname} from 'node:path';
import {makeDirectory, type Written} from './commit.ts';
import {type FilePort, patchAll} from './file-port.ts';

/** Bytes to stand at a place of a file. */
export type Patch = {readonly at: number; readonly bytes: Buffer};

/**
 * Makes a staged file final where it lies: patches and sync. It keeps the name under which no reader looks until it is
 * renamed to `path`, which is the same as for a file that was written: so a power cut leaves it whole there, or not there.
 * May be repeated. Rejects with what the file system says; the staged file then stays.
 */
export async function finishStaged(
	files: FilePort,
	staged: string,
	path: string,
	patches: readonly Patch[],
	{bytes, crc32}: {readonly bytes: number; readonly crc32: number},
): Promise<Written> {
	makeDirectory(files, dirname(path));
	const fd = files.edit(staged);
	let open = true;
	try {
		for (const {at, bytes: content} of patches) patchAll(files, fd, content, at);
		await files.settle(fd);
		const mark = files.mark(fd);
		open = false;
		files.close(fd);
		if (mark.bytes !== bytes) throw new Error(`${staged}: ${mark.bytes} bytes where ${bytes} belong`);
		return {temporary: staged, mark, crc32};
	} catch (error) {
		if (open) files.close(fd);
		throw error;
	}
}

/** Whether a rename can bring a file from the one directory into the other. */
export const sameFileSystem = (one: string, other: string): boolean => statSync(one).dev === statSync(other).dev;
