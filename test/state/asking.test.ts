import {beforeEach, describe, expect, test} from 'vitest';
import type {Question} from '../../src/ops/transports/question.ts';
import {type Asking, createAsking} from '../../src/state/asking.ts';
import {createDispatch, type Dispatch} from '../../src/state/dispatch.ts';
import type {Engine} from '../../src/state/engine.ts';
import {type ConsoleStore, createConsoleStore} from '../../src/state/store.ts';
import {NOW} from '../ui/support/sample-facts.ts';
import {sampleState} from '../ui/support/sample-state.ts';

let store: ConsoleStore;
let asking: Asking;
let dispatch: Dispatch;
let noted: string[];
let hints: string[];

beforeEach(() => {
	store = createConsoleStore(sampleState());
	noted = [];
	hints = [];
	asking = createAsking({
		store,
		clock: () => NOW,
		note: entry => noted.push(entry.words),
		hint: words => hints.push(words),
	});
	dispatch = createDispatch({
		store,
		asking,
		engine: {abort() {}, note() {}} as unknown as Engine,
		clock: () => NOW,
		screen: {redraw() {}, suspend() {}},
	});
});

const KEY: Question = {kind: 'passphrase', file: '/me/id', again: false};
const HOST_KEY: Question = {kind: 'host-key', name: '[gpu]:22', label: 'ED25519 SHA256:abc', file: '/me/known'};
const PROMPTS: Question = {
	kind: 'prompts',
	account: 'me@gpu',
	title: '',
	instructions: '',
	prompts: [
		{text: 'Name', echo: true},
		{text: 'Code', echo: false},
	],
};

const top = () => store.getState().view.overlays.at(-1);
const type = (text: string) => {
	for (const letter of text) dispatch({type: 'type', text: letter});
};

test('what is typed goes to the route and nowhere else: not into the state, not into the journal', async () => {
	const answer = asking.ask(KEY);
	expect(top()).toMatchObject({type: 'ask', question: KEY, shown: '', filled: false});
	type('open sesamx');
	dispatch({type: 'erase'});
	type('e');
	expect(top()).toMatchObject({shown: '', filled: true});
	expect(JSON.stringify(store.getState().view)).not.toContain('sesam');
	dispatch({type: 'accept'});
	expect(await answer).toEqual(['open sesame']);
	expect(top()).toBeUndefined();
	expect(noted).toEqual(['passphrase of /me/id: given']);
});

test.each(['escape', 'back', 'interrupt'] as const)('%s skips the question', async gesture => {
	const answer = asking.ask(KEY);
	type('open');
	dispatch({type: gesture});
	expect(await answer).toBeNull();
	expect(noted).toEqual(['passphrase of /me/id: skipped']);
	expect(store.getState().leaving).toBeUndefined();
});

test('one dialog at a time, in the order they came', async () => {
	const first = asking.ask(KEY);
	const second = asking.ask({...KEY, file: '/me/other'});
	expect(store.getState().view.overlays).toHaveLength(1);
	type('a');
	dispatch({type: 'accept'});
	expect(await first).toEqual(['a']);
	expect(top()).toMatchObject({question: {file: '/me/other'}, filled: false});
	type('b');
	dispatch({type: 'accept'});
	expect(await second).toEqual(['b']);
});

test('a question waits until nothing else has the keyboard', () => {
	dispatch({type: 'open', overlay: 'palette'});
	void asking.ask(KEY);
	type('q');
	expect(store.getState().view.overlays.map(each => each.type)).toEqual(['palette']);
	dispatch({type: 'back'});
	expect(top()).toMatchObject({type: 'ask', filled: false});
});

describe('a host key', () => {
	test('is kept by the word yes and nothing else, and the journal says so', async () => {
		const answer = asking.ask(HOST_KEY);
		type('y');
		dispatch({type: 'accept'});
		expect(top()).toMatchObject({shown: 'y', complaint: 'type yes to keep the key; Esc does not'});
		type('es');
		dispatch({type: 'accept'});
		expect(await answer).toEqual(['yes']);
		expect(noted).toEqual(['host key of [gpu]:22 (ED25519 SHA256:abc) accepted, to be kept in /me/known']);
	});

	test('refused, the journal says that', async () => {
		const answer = asking.ask(HOST_KEY);
		dispatch({type: 'escape'});
		expect(await answer).toBeNull();
		expect(noted).toEqual(['host key of [gpu]:22 (ED25519 SHA256:abc) not accepted']);
	});
});

test("a server's prompts are answered one after another, seen only where the server allows it", async () => {
	const answer = asking.ask(PROMPTS);
	type('me');
	expect(top()).toMatchObject({at: 0, shown: 'me'});
	dispatch({type: 'accept'});
	expect(top()).toMatchObject({at: 1, shown: '', filled: false});
	type('123');
	expect(top()).toMatchObject({at: 1, shown: '', filled: true});
	dispatch({type: 'accept'});
	expect(await answer).toEqual(['me', '123']);
	expect(noted).toEqual(['what me@gpu asks for: given']);
});

test('an empty passphrase is no answer; asked again, it says why', () => {
	void asking.ask({...KEY, again: true});
	expect(top()).toMatchObject({complaint: 'that was not it'});
	dispatch({type: 'accept'});
	expect(top()).toMatchObject({complaint: 'nothing is typed; Esc skips this key'});
});

test('a withdrawn question goes, shown or not, and the next one comes', async () => {
	const gone = new AbortController();
	const shown = asking.ask(PROMPTS, gone.signal);
	const queued = asking.ask(PROMPTS, gone.signal);
	void asking.ask(KEY);
	gone.abort();
	expect([await shown, await queued]).toEqual([null, null]);
	expect(top()).toMatchObject({question: KEY});
	expect(hints).toEqual(['the other end no longer waits for an answer']);
});
