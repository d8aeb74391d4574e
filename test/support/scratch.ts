import {chmodSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

/** What tests leave behind lies in one directory, and goes with them. Its name is short: sockets have paths of 108 bytes. */
export default function scratch(): () => void {
	const directory = mkdtempSync(join(tmpdir(), 'rl-'));
	// Some tests are another user for a while.
	chmodSync(directory, 0o755);
	process.env.TMPDIR = directory;
	return () => rmSync(directory, {recursive: true, force: true});
}
