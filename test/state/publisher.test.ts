import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import type {Facts} from '../../src/ops/facts.ts';
import type {Journal} from '../../src/state/journal.ts';
import {createPublisher, type Publisher} from '../../src/state/publisher.ts';
import type {NewEntry} from '../../src/state/recorder.ts';
import {type ConsoleStore, createConsoleStore} from '../../src/state/store.ts';
import {summaryOf} from '../../src/state/summary.ts';
import {NOW, sampleFacts, UNIT} from '../ui/support/sample-facts.ts';
import {factsOf, sampleState} from '../ui/support/sample-state.ts';

let store: ConsoleStore;
let publisher: Publisher;
let facts: Facts;
let noted: NewEntry[];
let takes: boolean;
let recording: Journal['state'];

beforeEach(() => {
	vi.useFakeTimers({now: NOW});
	const state = sampleState();
	store = createConsoleStore({...state, session: {...state.session, lastKeyAt: NOW}});
	[facts, noted, takes, recording] = [factsOf(sampleFacts), [], true, 'ok'];
	publisher = createPublisher({
		store,
		recorder: {note: entry => noted.push(entry), keep: async entry => void noted.push(entry)},
		journal: {
			get state() {
				return recording;
			},
		} as Journal,
		clock: Date.now,
		current: () => ({facts, history: store.getState().history, work: 2}),
		summarize: () => summaryOf({...store.getState(), facts}),
		mayPublish: () => takes,
	});
});
afterEach(() => {
	publisher.stop();
	vi.useRealTimers();
});

/** How often the store changed its clock meanwhile. */
function publishedIn(ms: number): number {
	let count = 0;
	const end = store.subscribe((now, before) => {
		if (now.nowMs !== before.nowMs) count++;
	});
	vi.advanceTimersByTime(ms);
	end();
	return count;
}
const words = () => noted.map(entry => entry.words);
const RUNNING = `${UNIT} is running and comes back at boot`;

test('once a second, in one commit: facts, clock and alerts together', () => {
	const seen: (readonly [boolean, number, boolean, number])[] = [];
	store.subscribe(state =>
		seen.push([state.facts === facts, state.nowMs, state.alerts.some(alert => alert.words === RUNNING), state.work]),
	);
	vi.advanceTimersByTime(2_500);
	expect(seen).toEqual([
		[true, NOW + 1_000, true, 2],
		[true, NOW + 2_000, true, 2],
	]);
});

test('nobody at the keys for two minutes: every other second, until one comes', () => {
	expect(publishedIn(120_000)).toBe(120);
	expect(publishedIn(60_000)).toBe(30);
	store.setState(({session}) => ({session: {...session, lastKeyAt: Date.now()}}));
	expect(publishedIn(10_000)).toBe(10);
});

test('a terminal that takes no more gets nothing, and later all at once', () => {
	takes = false;
	expect(publishedIn(30_000)).toBe(0);
	takes = true;
	expect(publishedIn(1_000)).toBe(1);
	expect(store.getState().nowMs).toBe(NOW + 31_000);
});

test('an alert is noted when it comes up, not again while it lasts, and again when it comes back', () => {
	vi.advanceTimersByTime(20_000);
	expect(words().filter(each => each === RUNNING)).toEqual([RUNNING]);
	facts = factsOf({...sampleFacts, services: {manager: 'systemd', units: []}});
	vi.advanceTimersByTime(20_000);
	facts = factsOf(sampleFacts);
	vi.advanceTimersByTime(20_000);
	expect(words().filter(each => each === RUNNING)).toEqual([RUNNING, RUNNING]);
});

test('acknowledged at once, one or all', () => {
	publisher.now();
	const [first, second] = store.getState().alerts;
	publisher.acknowledge(first?.id ?? '');
	const acknowledged = () => store.getState().alerts.map(alert => alert.acknowledged);
	expect(acknowledged().filter(Boolean).length).toBe(1);
	expect(second?.acknowledged).toBe(false);
	publisher.acknowledge('all');
	expect(acknowledged()).not.toContain(false);
});

test('armed for half an hour without a key, and then no more', () => {
	vi.advanceTimersByTime(30 * 60_000);
	expect(store.getState().session.readOnly).toBe(false);
	vi.advanceTimersByTime(3_000);
	expect(store.getState().session.readOnly).toBe(true);
	expect(words().filter(each => each === 'read-only after 30 min without a key').length).toBe(1);
});

test('a journal that cannot be written is on the screen with the next second', () => {
	recording = 'failing';
	vi.advanceTimersByTime(1_000);
	expect(store.getState().session.recording).toBe('failing');
});

test('a run is followed in the journal every ten minutes while it lives', () => {
	const run = {alive: true, state: 'running', extracted: 5, errors: 0} as never;
	vi.advanceTimersByTime(11 * 60_000);
	expect(noted.filter(({kind}) => kind === 'mark')).toEqual([]);
	facts = factsOf({...sampleFacts, extraction: {...sampleFacts.extraction, run}});
	vi.advanceTimersByTime(21 * 60_000);
	const marks = noted.filter(({kind}) => kind === 'mark');
	expect(marks.length).toBe(3);
	expect(marks[0]?.words).toMatch(/^extraction running: \d+ of 37312 whole$/);
	expect(marks[0]?.summary?.run?.extracted).toBe(5);
});
