import {stripVTControlCharacters} from 'node:util';
import {cleanup, render} from 'ink-testing-library';
import {afterEach, describe, expect, test} from 'vitest';
import type {Question} from '../../../src/ops/transports/question.ts';
import type {AskOverlay} from '../../../src/state/state.ts';
import {App} from '../../../src/ui/app.tsx';
import {ConsoleContext} from '../../../src/ui/hooks/use-console.ts';
import {pasted, pressed} from '../../../src/ui/keymap/use-keymap.ts';
import {askLayer} from '../../../src/ui/overlays/ask.ts';
import {layerRows, placeOf} from '../../../src/ui/overlays/layer.ts';
import {linesOf} from '../support/lines.ts';
import {NOW} from '../support/sample-facts.ts';
import {sampleState} from '../support/sample-state.ts';
import {standIn} from '../support/stand-in.ts';

afterEach(cleanup);

const SCREEN = {width: 100, height: 30};
const overlay = (question: Question, change: Partial<AskOverlay> = {}): AskOverlay => ({
	type: 'ask',
	question,
	at: 0,
	shown: '',
	filled: false,
	openedAt: NOW - 60_000,
	complaint: null,
	...change,
});
const linesIn = (one: AskOverlay, screen = SCREEN) => {
	const layer = askLayer(one, screen);
	return linesOf(layerRows(layer, placeOf(layer, screen))).map(line => line.replace(/^│ /, '').replace(/ +│$/, ''));
};

const KEY: Question = {kind: 'passphrase', file: '/me/.ssh/id', again: false};
const HOST_KEY: Question = {
	kind: 'host-key',
	name: '[gpu.example]:2222',
	label: 'ED25519 SHA256:Kd4Ns1lWGAyvSmLzM1YFkPNPsN2NqEyPDOIO8RG0xGE',
	file: '/me/.ssh/known_hosts',
};

test('a passphrase is asked for by its file and never shown', () => {
	expect(linesIn(overlay(KEY, {filled: true, complaint: 'that was not it'})).slice(1, -1)).toEqual([
		'/me/.ssh/id is encrypted.',
		'It is kept in memory until this program ends, and written nowhere.',
		'',
		'passphrase of /me/.ssh/id:',
		'(not shown)_',
		'that was not it',
		'Enter answers, Esc skips; C asks again later',
	]);
});

test('a host key is shown with name, type, fingerprint and the file that would keep it', () => {
	expect(linesIn(overlay(HOST_KEY, {shown: 'ye'})).slice(1, -1)).toEqual([
		'No line of known_hosts names [gpu.example]:2222. Its key is',
		'ED25519 SHA256:Kd4Ns1lWGAyvSmLzM1YFkPNPsN2NqEyPDOIO8RG0xGE',
		'Compare it with what that host shows on a console of its own, or with what its',
		'owner says.',
		'yes keeps it in /me/.ssh/known_hosts',
		'',
		'type yes to keep this key:',
		'ye_',
		'Enter keeps it, Esc refuses; C asks again later',
	]);
});

describe("a server's own words", () => {
	const hostile = (text: string): Question => ({
		kind: 'prompts',
		account: 'me@gpu',
		title: text,
		instructions: text,
		prompts: [{text, echo: true}],
	});

	test('are marked as its own, cleaned, and cannot fill the screen', () => {
		const lines = linesIn(overlay(hostile('\u001b[2J\u202eyes\u0007'.repeat(900)), {shown: '\u001b[31m'}));
		expect(lines.length).toBeLessThanOrEqual(SCREEN.height);
		expect(lines[1]).toBe('me@gpu asks before it lets anyone in. These are its own words:');
		expect(lines[2]).toContain('^[[2J<U+202E>yes^G');
		expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
		expect(lines.at(-2)).toBe('Enter answers, Esc skips; C asks again later');
	});

	test('of many lines end early', () => {
		expect(linesIn(overlay(hostile('line\n'.repeat(100)))).length).toBeLessThanOrEqual(SCREEN.height);
	});
});

describe('keys', () => {
	const console = (question: Question, openedAt = NOW - 60_000) =>
		standIn(sampleState({view: {overlays: [overlay(question, {openedAt})]}}));
	const press = (tools: ReturnType<typeof console>, name: string, text: string | null = null, burst = false) =>
		pressed({name, text, burst}, tools, NOW);

	test('every letter is text, also the ones that mean something elsewhere', () => {
		const tools = console(KEY);
		for (const letter of ['q', 'j', 'A', '?']) press(tools, letter, letter);
		press(tools, 'space', ' ');
		expect(tools.actions).toEqual(['q', 'j', 'A', '?', ' '].map(text => ({type: 'type', text})));
	});

	test('what was typed ahead counts for nothing', () => {
		const tools = console(HOST_KEY, NOW - 100);
		press(tools, 'y', 'y');
		press(tools, 'enter');
		expect(tools.actions.map(action => action.type)).toEqual(['hint', 'hint']);
	});

	test('a secret may be pasted, the word yes may not, and Enter counts only alone', () => {
		const secret = console(KEY);
		pasted('open sesame', secret, NOW);
		expect(secret.actions).toEqual([{type: 'type', text: 'open sesame'}]);
		const key = console(HOST_KEY);
		pasted('yes', key, NOW);
		press(key, 'enter', null, true);
		expect(key.actions.map(action => action.type)).toEqual(['hint', 'hint']);
	});

	test('Esc and Enter', () => {
		for (const [name, action] of [
			['escape', 'back'],
			['enter', 'accept'],
			['backspace', 'erase'],
		] as const) {
			const tools = console(KEY);
			press(tools, name);
			expect(tools.actions).toEqual([{type: action}]);
		}
	});
});

test('the dialog lies over the console, with its keys in the footer', () => {
	const tools = standIn(sampleState({view: {overlays: [overlay(HOST_KEY)]}}), {columns: 120, rows: 40});
	const {lastFrame} = render(
		<ConsoleContext value={tools}>
			<App />
		</ConsoleContext>,
	);
	const frame = stripVTControlCharacters(lastFrame() ?? '');
	expect(frame).toContain('unknown host key');
	expect(frame).toContain('SHA256:Kd4Ns1lWGAyvSmLzM1YFkPNPsN2NqEyPDOIO8RG0xGE');
	expect(frame).toMatch(/Enter keep it.*Esc refuse/);
});
