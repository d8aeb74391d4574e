import type {Key} from 'ink';
import {describe, expect, it} from 'vitest';
import {functionKey, presses} from '../../../src/ui/keymap/keys.ts';

const NONE: Key = {
	upArrow: false,
	downArrow: false,
	leftArrow: false,
	rightArrow: false,
	pageDown: false,
	pageUp: false,
	home: false,
	end: false,
	return: false,
	escape: false,
	ctrl: false,
	shift: false,
	tab: false,
	backspace: false,
	delete: false,
	meta: false,
	super: false,
	hyper: false,
	capsLock: false,
	numLock: false,
};

const names = (input: string, key: Partial<Key> = {}) => presses(input, {...NONE, ...key}).map(press => press.name);

describe('presses', () => {
	it('names the keys of the table', () => {
		expect(names('j')).toEqual(['j']);
		expect(names('G', {shift: true})).toEqual(['G']);
		expect(names('', {upArrow: true})).toEqual(['up']);
		expect(names('', {pageDown: true})).toEqual(['pagedown']);
		expect(names('\r', {return: true})).toEqual(['enter']);
		expect(names('\n')).toEqual(['enter']);
		expect(names('', {escape: true, meta: true})).toEqual(['escape']);
		expect(names('', {tab: true})).toEqual(['tab']);
		expect(names('', {tab: true, shift: true})).toEqual(['shift+tab']);
		expect(names('d', {ctrl: true})).toEqual(['ctrl+d']);
		expect(names(' ')).toEqual(['space']);
		expect(names('', {backspace: true})).toEqual(['backspace']);
	});

	it('takes letters that came together one by one, and says that they came together', () => {
		expect(presses('jj', NONE)).toEqual([
			{name: 'j', text: 'j', burst: true},
			{name: 'j', text: 'j', burst: true},
		]);
		expect(presses('y\r', NONE).map(({name, burst}) => [name, burst])).toEqual([
			['y', true],
			['enter', true],
		]);
		expect(presses('j', NONE)[0]?.burst).toBe(false);
	});

	it('takes what is left of an unknown sequence for no keys at all', () => {
		expect(names('[<35;10;5M')).toEqual([]);
		expect(names('[1;9Q')).toEqual([]);
		expect(names('')).toEqual([]);
	});

	it('does not take Alt and a letter for the letter', () => {
		expect(names('q', {meta: true})).toEqual(['escape', 'q']);
		expect(presses('y', {...NONE, meta: true})[0]?.text).toBe(null);
	});

	it('reads function keys from their sequence', () => {
		expect(
			['\x1bOP', '\x1b[15~', '\x1b[17~', '\x1b[20~', '\x1b[24~'].map(sequence => functionKey(sequence)?.name ?? null),
		).toEqual(['f1', 'f5', 'f6', 'f9', null]);
	});
});
