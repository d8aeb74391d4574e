import {execFileSync} from 'node:child_process';
import {expect, test} from 'vitest';
import {quote, show} from '../../src/ops/command.ts';

const WORDS = [
	'',
	'plain',
	'-n',
	'--',
	'a b',
	"it's",
	'"',
	'$HOME',
	'`id`',
	'\\',
	'a\nb',
	'*',
	'~',
	'!',
	'#',
	';',
	'|',
	'ü',
	'日本',
	'\t',
	"'",
	"''",
	"a'b'c",
	'\u001b[31m',
	'{a,b}',
	'%s',
	'=',
];

test('every word comes back from a real shell as it went in', () => {
	for (const shell of ['/bin/sh', '/bin/bash']) {
		const out = execFileSync(shell, ['-c', `printf '%s\\0' ${show(WORDS)}`]).toString();
		expect(out.split('\0').slice(0, -1)).toEqual(WORDS);
	}
});

test('quoted once per shell crossed, a word survives two shells', () => {
	const inner = show(['printf', '%s\\0', ...WORDS]);
	const out = execFileSync('/bin/sh', ['-c', show(['/bin/sh', '-c', inner])]).toString();
	expect(out.split('\0').slice(0, -1)).toEqual(WORDS);
});

test('a harmless word is shown bare and the empty word is visible', () => {
	expect(quote('/usr/bin/env')).toBe('/usr/bin/env');
	expect(quote('')).toBe("''");
});
