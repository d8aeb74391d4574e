import {beforeEach, expect, test} from 'vitest';
import type {Plan} from '../../src/ops/operations/operation.ts';
import {createDispatch, type Dispatch} from '../../src/state/dispatch.ts';
import type {Engine} from '../../src/state/engine.ts';
import {createHolding, type Holding, showHolds} from '../../src/state/holding.ts';
import {advance, started} from '../../src/state/operation-progress.ts';
import {type ConsoleStore, createConsoleStore} from '../../src/state/store.ts';
import {NOW} from '../ui/support/sample-facts.ts';
import {sampleState} from '../ui/support/sample-state.ts';

const plan = (title: string): Plan => ({
	operation: 'recover',
	title,
	tier: 3,
	confirmWord: 'ct129',
	targets: [],
	excluded: [],
	steps: [],
	warnings: [],
	inverse: null,
});

let store: ConsoleStore;
let dispatch: Dispatch;
let holding: Holding;
let written: string[];

beforeEach(() => {
	store = createConsoleStore(sampleState());
	written = [];
	const write = (entry: {words: string}) => written.push(entry.words);
	holding = createHolding(write, async entry => void write(entry));
	const engine = {goOn: holding.choose, note: write, abort() {}} as unknown as Engine;
	dispatch = createDispatch({store, engine, clock: () => NOW, screen: {redraw() {}, suspend() {}}});
	showHolds(store, () => NOW);
	store.setState({operation: started(plan('recover ct129'), NOW)});
});

const held = (title: string) =>
	store.setState(({operation}) => ({
		operation: advance(operation, {type: 'held', index: 0, next: plan(title), at: NOW}),
	}));
const letGo = () =>
	store.setState(({operation}) => ({operation: advance(operation, {type: 'let-go', index: 0, at: NOW})}));
const open = () => store.getState().view.overlays.map(({type}) => type);
const overlays = (...types: readonly ('help' | 'alerts')[]) => {
	for (const overlay of types) dispatch({type: 'open', overlay});
};

test('a hold comes to the screen when nothing else has the keyboard, and goes with its end', () => {
	overlays('help');
	held('free the cards');
	expect(open()).toEqual(['help']);
	dispatch({type: 'back'});
	expect(open()).toEqual(['held']);
	letGo();
	expect(open()).toEqual([]);
});

test('laid aside it stays away until it is asked for; the next hold comes by itself', () => {
	held('free the cards');
	dispatch({type: 'back'});
	overlays('alerts');
	dispatch({type: 'back'});
	expect(open()).toEqual([]);
	dispatch({type: 'open', overlay: 'held'});
	expect(open()).toEqual(['held']);
	letGo();
	held('restore the files');
	expect(open()).toEqual(['held']);
});

test('a choice is on disk before the recovery goes on, and the journal has the wait too', async () => {
	const choice = holding.hold(new AbortController().signal)(plan('free the cards'));
	expect(written).toEqual(['step by step: waits before: free the cards']);
	dispatch({type: 'go-on', choice: 'next'});
	expect(await choice).toBe('next');
	expect(written.at(-1)).toBe('step by step: goes on with: free the cards');
});

test('a choice that cannot be written down is none', async () => {
	const full = createHolding(
		() => {},
		() => Promise.reject(new Error('no space left')),
	);
	const choice = full.hold(new AbortController().signal)(plan('free the cards'));
	full.choose('next');
	await expect(choice).rejects.toThrow('no space left');
});

test('an abort is a stop, and a key without a hold is nothing', async () => {
	const abort = new AbortController();
	const choice = holding.hold(abort.signal)(plan('free the cards'));
	abort.abort();
	expect(await choice).toBe('stop');
	expect(written.at(-1)).toBe('step by step: stopped before: free the cards');
	dispatch({type: 'go-on', choice: 'next'});
	expect(written).toHaveLength(2);
});

test('a console that disarmed itself while it waited goes on only once it is armed again; it may always stop', async () => {
	const choice = holding.hold(new AbortController().signal)(plan('free the cards'));
	store.setState(({session}) => ({session: {...session, readOnly: true}}));
	dispatch({type: 'go-on', choice: 'rest'});
	expect(store.getState().view.hint?.words).toBe('read-only: Tab, then W leaves it');
	expect(written).toHaveLength(1);
	dispatch({type: 'go-on', choice: 'stop'});
	expect(await choice).toBe('stop');
});
