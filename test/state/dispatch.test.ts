import {beforeEach, expect, test} from 'vitest';
import {fresh} from '../../src/ops/facts.ts';
import type {Plan} from '../../src/ops/operations/operation.ts';
import {createDispatch, type Dispatch} from '../../src/state/dispatch.ts';
import type {Engine} from '../../src/state/engine.ts';
import type {ConsoleState, JournalEntry} from '../../src/state/state.ts';
import {type ConsoleStore, createConsoleStore} from '../../src/state/store.ts';
import {NOW, sampleFacts, service, UNIT} from '../ui/support/sample-facts.ts';
import {factsOf, mendableState, sampleState} from '../ui/support/sample-state.ts';

let store: ConsoleStore;
let dispatch: Dispatch;
let ran: string[];
let noted: Omit<JournalEntry, 'at'>[];
let now: number;

beforeEach(() => {
	store = createConsoleStore(sampleState());
	reopen();
});

function reopen() {
	ran = [];
	noted = [];
	now = NOW;
	const engine = {
		situation: () => ({target: store.getState().target, facts: store.getState().facts, nowMs: now}),
		run: async (work: Plan | {plan: Plan}, _onEvent?: unknown, pace?: string) => {
			ran.push('plan' in work ? `${work.plan.title}, ${pace}` : work.title);
			return 'done';
		},
		abort: () => ran.push('abort'),
		note: (entry: Omit<JournalEntry, 'at'>) => noted.push(entry),
		acknowledge: () => {},
		look: async () => {},
	} as unknown as Engine;
	dispatch = createDispatch({store, engine, clock: () => now, screen: {redraw() {}, suspend() {}}});
}

const top = () => store.getState().view.overlays.at(-1);
const hint = () => store.getState().view.hint?.words;
const type = (text: string) => {
	for (const letter of text) dispatch({type: 'type', text: letter});
};
const set = (change: Partial<ConsoleState>) => store.setState(change);

test('an operation is shown before it is run, and runs only with its word typed after a moment', async () => {
	dispatch({type: 'request-operation', operation: 'stop-service'});
	expect(top()).toMatchObject({type: 'confirm', typed: '', button: 'cancel', complaint: null});
	dispatch({type: 'accept'});
	expect(top()).toMatchObject({complaint: 'too soon: typed ahead'});
	now += 400;
	dispatch({type: 'accept'});
	expect(top()).toMatchObject({complaint: 'type "int4" to confirm'});
	expect(ran).toEqual([]);
	type('int4');
	dispatch({type: 'accept'});
	expect(ran).toEqual([`stop ${UNIT} and keep it from coming back at boot`]);
	expect(store.getState().view).toMatchObject({overlays: [], focus: 'operations'});
});

test.each([
	['all at once', 0, 'whole'],
	['step by step', 1, 'stepwise'],
	['all at once after all', 2, 'whole'],
])('a recovery is run %s as its dialog says', (_name, toggles, pace) => {
	store = createConsoleStore(mendableState());
	reopen();
	dispatch({type: 'request-operation', operation: 'recover'});
	for (let turn = 0; turn < toggles; turn++) dispatch({type: 'toggle-stepwise'});
	now += 4_000;
	type('kpro6/ct129');
	dispatch({type: 'accept'});
	expect(ran).toEqual([expect.stringMatching(new RegExp(`^recover kpro6/ct129: .*, ${pace}$`))]);
});

test('when the targets changed while the dialog was open it says what, and wants the word again', () => {
	dispatch({type: 'request-operation', operation: 'stop-service'});
	now += 400;
	type('int4');
	set({
		facts: factsOf({
			...sampleFacts,
			services: {manager: 'systemd', units: [service({unitFileState: 'disabled', wantedBy: []})]},
		}),
	});
	dispatch({type: 'accept'});
	expect(ran).toEqual([]);
	expect(top()).toMatchObject({
		type: 'confirm',
		typed: '',
		complaint: 'the commands are not the ones that were shown; look again',
	});
});

test('when it became impossible meanwhile, nothing runs', () => {
	dispatch({type: 'request-operation', operation: 'stop-service'});
	now += 400;
	type('int4');
	set({facts: {...store.getState().facts, services: null}});
	dispatch({type: 'accept'});
	expect(ran).toEqual([]);
	expect(top()).toMatchObject({complaint: expect.stringMatching(/^no longer possible/)});
	expect(fresh(store.getState().facts.services)).toBeNull();
});

test('a dry run shows the commands and does nothing', () => {
	dispatch({type: 'toggle-dry-run'});
	dispatch({type: 'request-operation', operation: 'stop-service'});
	now += 400;
	type('int4');
	dispatch({type: 'accept'});
	expect(ran).toEqual([]);
	expect(noted.map(({command}) => command).filter(Boolean)).toEqual([
		`systemctl stop --no-block -- ${UNIT}`,
		`systemctl disable -- ${UNIT}`,
	]);
	expect(hint()).toBe('dry run: nothing was done (2 commands in the command log)');
});

test('read-only refuses every operation with the way out', () => {
	set({session: {...store.getState().session, readOnly: true}});
	dispatch({type: 'request-operation', operation: 'stop-service'});
	expect(top()).toBeUndefined();
	expect(hint()).toBe('read-only: press W to leave it first');
	dispatch({type: 'open', overlay: 'unlock'});
	dispatch({type: 'accept'});
	expect(store.getState().session.readOnly).toBe(false);
});

test('one operation at a time', () => {
	dispatch({type: 'request-operation', operation: 'stop-service'});
	const {plan} = top() as {plan: Plan};
	set({
		operation: {phase: 'running', plan, steps: [], startedAt: now, output: []},
		view: {...store.getState().view, overlays: []},
	});
	dispatch({type: 'request-operation', operation: 'stop-service'});
	expect(hint()).toMatch(/is still running$/);
});

test('quitting while an operation runs asks first; without one it leaves', () => {
	dispatch({type: 'back'});
	expect(store.getState().leaving).toBe(0);
});

test('Ctrl-C closes, then stops waiting, and leaves only when pressed twice', () => {
	dispatch({type: 'open', overlay: 'help'});
	dispatch({type: 'interrupt'});
	expect(top()).toBeUndefined();
	now += 2_500;
	dispatch({type: 'interrupt'});
	expect(store.getState().leaving).toBeUndefined();
	now += 500;
	dispatch({type: 'interrupt'});
	expect(store.getState().leaving).toBe(130);
});

test('q closes the top layer first, then zoom, then leaves', () => {
	dispatch({type: 'zoom'});
	dispatch({type: 'open', overlay: 'alerts'});
	dispatch({type: 'back'});
	expect(store.getState().view).toMatchObject({overlays: [], zoomed: true});
	dispatch({type: 'back'});
	expect(store.getState().view.zoomed).toBe(false);
	expect(store.getState().leaving).toBeUndefined();
});

test('the filter filters while it is typed, and Esc takes it away', () => {
	dispatch({type: 'focus', pane: 'processes'});
	dispatch({type: 'open', overlay: 'filter'});
	type('vllm');
	expect(store.getState().view.filter.processes).toBe('vllm');
	dispatch({type: 'escape'});
	expect(store.getState().view).toMatchObject({overlays: [], filter: {processes: ''}});
});

test('freezing keeps what was seen on the screen while facts go on', () => {
	dispatch({type: 'toggle-freeze'});
	const {facts} = store.getState();
	set({facts: {...facts, gpus: null}});
	expect(store.getState().view.frozen?.facts).toBe(facts);
	dispatch({type: 'toggle-freeze'});
	expect(store.getState().view).not.toHaveProperty('frozen');
});
