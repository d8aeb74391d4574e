import type {Key} from 'ink';

/** One key as the table names it. `text` is what it would write into a text field; null for a key that writes nothing. */
export type Press = {
	readonly name: string;
	readonly text: string | null;
	/** It came together with others, as a paste or a lagging link delivers them: it never confirms and never acts. */
	readonly burst: boolean;
};

/** Ink's event → keys. Letters that arrive together are one event there (`jj`), and every one of them counts here. */
export function presses(input: string, key: Key): readonly Press[] {
	const named = nameOf(input, key);
	if (named !== null) return [{name: withModifiers(named, key), text: named === 'space' ? ' ' : null, burst: false}];
	// What is left of a sequence that nobody knows (a mouse report): not letters that somebody typed.
	if (input === '' || LEFTOVER.test(input)) return [];
	const characters = [...input];
	if (key.ctrl) return [{name: `ctrl+${input.toLowerCase()}`, text: null, burst: false}];
	// No key here is an Alt key: Esc and what was typed after it came together, over a link that lags.
	if (key.meta) return [{name: 'escape', text: null, burst: true}, ...characters.flatMap(each => pressOf(each, true))];
	return characters.flatMap(character => pressOf(character, characters.length > 1));
}

const LEFTOVER = /^[[O][0-9;:<=>?]*[ -/]*[A-Za-z~^$@]$/;
const CONTROL: Readonly<Record<string, string>> = {'\r': 'enter', '\n': 'enter', '\t': 'tab', '\x1b': 'escape'};

function pressOf(character: string, burst: boolean): readonly Press[] {
	const control = CONTROL[character];
	if (control !== undefined) return [{name: control, text: null, burst}];
	if (character < ' ' || character === '\x7f') return [];
	return [{name: character === ' ' ? 'space' : character, text: character, burst}];
}

function nameOf(input: string, key: Key): string | null {
	if (key.upArrow) return 'up';
	if (key.downArrow) return 'down';
	if (key.leftArrow) return 'left';
	if (key.rightArrow) return 'right';
	if (key.pageUp) return 'pageup';
	if (key.pageDown) return 'pagedown';
	if (key.home) return 'home';
	if (key.end) return 'end';
	if (key.return || input === '\n') return 'enter';
	if (key.escape) return 'escape';
	if (key.tab) return 'tab';
	if (key.backspace || key.delete) return 'backspace';
	return input === ' ' && !key.ctrl && !key.meta ? 'space' : null;
}

const withModifiers = (name: string, key: Key): string =>
	`${key.ctrl ? 'ctrl+' : ''}${key.meta && name !== 'escape' ? 'alt+' : ''}${key.shift ? 'shift+' : ''}${name}`;

/** Function keys have no flag in Ink's event and no text: they are read from the sequence itself. */
export function functionKey(sequence: string): Press | null {
	const name = FUNCTION_KEYS[sequence];
	return name === undefined ? null : {name, text: null, burst: false};
}

const FUNCTION_KEYS: Readonly<Record<string, string>> = {
	'\x1bOP': 'f1',
	'\x1b[11~': 'f1',
	'\x1b[[A': 'f1',
	'\x1bOS': 'f4',
	'\x1b[14~': 'f4',
	'\x1b[[D': 'f4',
	'\x1b[15~': 'f5',
	'\x1b[[E': 'f5',
	'\x1b[17~': 'f6',
	'\x1b[20~': 'f9',
};
