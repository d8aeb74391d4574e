import {spawn} from 'node:child_process';
import type {Screen} from './screen.ts';

/** End of a half-written sequence, synchronised output, bracketed paste and alternate screen off, cursor and looks back. */
const RESTORE = '\x18\x1b[?2026l\x1b[?2004l\x1b[?1049l\x1b[0m\x1b[?25h';
const BOUND_MS = 200;

type RawInput = {readonly isTTY?: boolean; setRawMode?(on: boolean): unknown};

/** The terminal as it was found, or `gone`. Never throws, never takes longer than its bound. */
export function restoreTerminal(screen: Screen, stdin: RawInput): 'written' | 'full' | 'gone' {
	try {
		if (stdin.isTTY) stdin.setRawMode?.(false);
	} catch {
		// The terminal is gone: there is nothing to give back.
	}
	const outcome = screen.writeNow(RESTORE, BOUND_MS);
	if (outcome !== 'full') return outcome;
	try {
		// Stalled: somebody who may wait writes it when the terminal drains, or ends with it.
		spawn('/bin/sh', ['-c', "printf '\\030\\033[?2026l\\033[?2004l\\033[?1049l\\033[0m\\033[?25h'"], {
			detached: true,
			stdio: ['ignore', 1, 'ignore'],
		}).unref();
	} catch {
		// No process can be started; the operator's `reset` is all that is left.
	}
	return outcome;
}
