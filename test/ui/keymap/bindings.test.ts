import {describe, expect, it} from 'vitest';
import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal} from '../../../src/ops/operations/operation.ts';
import type {Action} from '../../../src/state/actions.ts';
import {type ConfirmOverlay, type ConsoleState, type Overlay, PANES} from '../../../src/state/state.ts';
import {isRefused, type Moment, scopesOf} from '../../../src/ui/keymap/binding.ts';
import {bindings, footerKeys, keyLabel, resolve} from '../../../src/ui/keymap/bindings.ts';
import {keyList} from '../../../src/ui/keymap/key-list.ts';
import type {Press} from '../../../src/ui/keymap/keys.ts';
import {MOTION_KEYS} from '../../../src/ui/keymap/motions.ts';
import {OPERATION_KEYS} from '../../../src/ui/keymap/operation-keys.ts';
import {NOW, UNIT} from '../support/sample-facts.ts';
import {mendableState, sampleState} from '../support/sample-state.ts';

const MOMENT: Moment = {nowMs: NOW + 10_000, reach: {at: 2, last: 5, page: 4}};
const ACTS: ReadonlySet<Action['type']> = new Set([
	'request-operation',
	'request-signal',
	'accept',
	'quit',
	'abort-operation',
	'go-on',
]);

const press = (name: string, burst = false): Press => ({name, text: name.length === 1 ? name : null, burst});
const meant = (name: string, state: ConsoleState, moment = MOMENT, burst = false) =>
	resolve(press(name, burst), scopesOf(state), state, moment);
const over = (...overlays: Overlay[]) => sampleState({view: {overlays}});

function confirming(
	operation: 'stop-service' | 'recover' | 'free-gpus',
	change: Partial<ConfirmOverlay> = {},
): ConsoleState {
	const plan = operationEntry(operation)?.plan(mendableState(), null);
	if (!plan || isRefusal(plan)) throw new Error(`no plan: ${JSON.stringify(plan)}`);
	return over({
		type: 'confirm',
		plan,
		typed: '',
		button: 'cancel',
		openedAt: NOW,
		scroll: 0,
		complaint: null,
		...change,
	});
}

/** A recovery that waits before its next step. */
function waiting(): ConsoleState {
	const next = operationEntry('stop-service')?.plan(mendableState(), null);
	const plan = operationEntry('recover')?.plan(mendableState(), null);
	if (!next || isRefusal(next) || !plan || isRefusal(plan)) throw new Error('no plan');
	return {
		...over({type: 'held', openedAt: NOW, scroll: 0}),
		operation: {
			phase: 'running',
			plan,
			steps: [],
			startedAt: NOW,
			output: [],
			held: {next, check: 'services', since: NOW},
		},
	};
}

describe('the table', () => {
	it('has no key twice in a scope', () => {
		const seen = bindings.flatMap(({scope, keys}) => keys.map(key => `${scope} ${key}`));
		expect(seen.filter((entry, index) => seen.indexOf(entry) !== index)).toEqual([]);
	});

	it('says something for every key', () => {
		expect(bindings.filter(({says, keys}) => says.trim() === '' || keys.length === 0)).toEqual([]);
	});

	it('lets nothing but motions use the motion keys of a scope that moves', () => {
		const moving = new Set(
			bindings.filter(({keys, says}) => says === 'one down' && keys.includes('j')).map(({scope}) => scope),
		);
		const others = bindings.filter(
			({scope, keys, says}) =>
				(moving.has(scope) || PANES.some(pane => pane === scope)) &&
				keys.some(key => MOTION_KEYS.has(key)) &&
				!/down|up|top|end/.test(says),
		);
		expect(others).toEqual([]);
		for (const key of ['j', 'k', 'g', 'G']) expect(meant(key, sampleState())).toMatchObject({type: 'move'});
	});

	it('starts nothing on a control key, and takes none that a terminal or tmux needs', () => {
		const states = [
			sampleState(),
			confirming('stop-service', {typed: 'int4'}),
			over({type: 'operations', index: 0}),
			over({type: 'signals', processKey: '9120@91200', index: 3}),
		];
		for (const {keys, means} of bindings.filter(binding => binding.keys.some(key => key.startsWith('ctrl+')))) {
			for (const state of states) {
				const meaning = means(state, MOMENT);
				const actions = isRefused(meaning) ? [] : [meaning].flat();
				expect(
					actions.filter(action => ACTS.has(action.type)),
					keys.join(),
				).toEqual([]);
			}
		}
		const taken = bindings
			.flatMap(({keys}) => keys)
			.filter(key => ['ctrl+a', 'ctrl+b', 'ctrl+k', 'ctrl+q', 'ctrl+s', 'ctrl+space', 'ctrl+\\'].includes(key));
		expect(taken).toEqual([]);
	});

	it('gives every function key a letter', () => {
		expect(
			bindings.filter(({keys}) => keys.some(key => /^f\d+$/.test(key)) && !keys.some(key => key.length === 1)),
		).toEqual([]);
	});

	it('marks whatever acts, so that keys in a burst cannot', () => {
		const states = [
			sampleState(),
			over({type: 'operations', index: 0}),
			over({type: 'signals', processKey: '9120@91200', index: 1}),
			over({type: 'unlock', openedAt: 0}),
			over({type: 'quit', openedAt: 0}),
			confirming('stop-service', {typed: 'int4'}),
			over({type: 'palette', text: '', index: 0}),
			waiting(),
		];
		for (const state of states) {
			for (const binding of bindings.filter(one => scopesOf(state).includes(one.scope) && one.scope !== 'filter')) {
				const meaning = binding.means(state, MOMENT);
				const acting = !isRefused(meaning) && [meaning].flat().some(action => ACTS.has(action.type));
				if (acting) expect(binding.acts, binding.says).toBe(true);
			}
		}
	});
});

describe('resolve', () => {
	it('gives the key to the innermost scope', () => {
		expect(meant('escape', sampleState())).toEqual({type: 'escape'});
		expect(meant('escape', over({type: 'help', scroll: 0}))).toEqual({type: 'back'});
		expect(meant('1', sampleState())).toEqual({type: 'focus', pane: 'gpu'});
		expect(meant('1', over({type: 'operations', index: 4}))).toEqual({
			type: 'request-operation',
			operation: 'stop-service',
		});
	});

	it('writes printable keys where text is taken', () => {
		expect(meant('q', over({type: 'palette', text: '', index: 0}))).toEqual({type: 'type', text: 'q'});
		expect(meant('/', over({type: 'filter', pane: 'log', text: ''}))).toEqual({type: 'type', text: '/'});
		expect(meant('j', confirming('stop-service'))).toEqual({type: 'type', text: 'j'});
		expect(meant('ctrl+c', over({type: 'palette', text: '', index: 0}))).toEqual({type: 'interrupt'});
	});

	it('has words for a key that does nothing', () => {
		expect(meant('X', sampleState())).toEqual({refused: 'X does nothing here (? for help)'});
		expect(meant('a', sampleState({alerts: []}))).toEqual({refused: 'no alert waits to be seen'});
		expect(meant('0', over({type: 'operations', index: 0}))).toEqual({refused: 'no operation is running'});
		expect(meant('2', over({type: 'operations', index: 0}))).toMatchObject({
			refused: expect.stringContaining('nothing to end'),
		});
	});

	it('refuses acts in read-only, with the key that leaves it', () => {
		const state = sampleState({view: {focus: 'processes'}});
		const locked = {...state, session: {...state.session, readOnly: true}};
		expect(meant('x', locked)).toEqual({refused: 'read-only: W to leave'});
		expect(meant('W', locked)).toEqual({type: 'open', overlay: 'unlock'});
		expect(meant('W', state)).toEqual({type: 'read-only', on: true});
	});

	it('tries the routes again only where one was passed over', () => {
		const state = sampleState();
		const route = (change: Partial<ConsoleState['route']>) => ({...state, route: {...state.route, ...change}});
		const passedOver = [{label: 'ssh gpu', reason: 'its passphrase was not given', at: NOW}];
		expect(meant('C', route({state: 'up', passedOver}))).toEqual({type: 'reconnect'});
		expect(meant('C', route({state: 'down', passedOver: []}))).toEqual({type: 'reconnect'});
		expect(meant('C', route({state: 'up', passedOver: []}))).toEqual({
			refused: 'the best route works: there is nothing to try again',
		});
	});

	it('takes the process of the cursor, or of the card, for a signal', () => {
		expect(meant('x', sampleState({view: {focus: 'processes'}}))).toEqual([
			{type: 'select', pane: 'processes', key: '812@8120'},
			{type: 'open', overlay: 'signals'},
		]);
		expect(
			meant('x', sampleState({view: {focus: 'gpu', selected: {...sampleState().view.selected, gpu: 'GPU-2'}}})),
		).toEqual([
			{type: 'select', pane: 'processes', key: '845@8450'},
			{type: 'open', overlay: 'signals'},
		]);
	});

	it('moves never further than the list reaches', () => {
		const state = over({type: 'help', scroll: 2});
		expect(meant('G', state)).toEqual({type: 'move', by: 3});
		expect(meant('g', state)).toEqual({type: 'move', by: -2});
		expect(meant('pagedown', state)).toEqual({type: 'move', by: 3});
		expect(meant('ctrl+u', state)).toEqual({type: 'move', by: -2});
	});

	it('closes the palette before it does what was chosen', () => {
		const state = over({type: 'palette', text: 'stop-service', index: 0});
		expect(meant('enter', state)).toEqual([{type: 'back'}, {type: 'request-operation', operation: 'stop-service'}]);
		expect(meant('enter', over({type: 'palette', text: 'no such thing', index: 0}))).toEqual({
			refused: 'nothing matches',
		});
	});
});

describe('confirming', () => {
	const soon = {...MOMENT, nowMs: NOW + 299};
	const settled = {...MOMENT, nowMs: NOW + 300};

	it('takes nothing in the first 300 ms', () => {
		const tooSoon = {refused: 'too soon: the dialog has only just opened'};
		expect(meant('i', confirming('stop-service'), soon)).toEqual(tooSoon);
		expect(meant('enter', confirming('stop-service', {typed: 'int4'}), soon)).toEqual(tooSoon);
		expect(meant('y', over({type: 'unlock', openedAt: NOW}), soon)).toEqual(tooSoon);
		expect(meant('escape', confirming('stop-service'), soon)).toEqual({type: 'back'});
	});

	it('wants the word, typed: letters may arrive together, a paste may not', () => {
		expect(meant('enter', confirming('stop-service'), settled)).toEqual({refused: 'type int4 first; Esc cancels'});
		expect(meant('enter', confirming('stop-service', {typed: 'int'}), settled)).toEqual({
			refused: 'type int4 first; Esc cancels',
		});
		expect(meant('enter', confirming('stop-service', {typed: 'int4'}), settled)).toEqual({type: 'accept'});
		expect(meant('i', confirming('stop-service'), settled, true)).toEqual({type: 'type', text: 'i'});
		const pasted: Press = {name: 'paste', text: 'int4', burst: true};
		expect(resolve(pasted, scopesOf(confirming('stop-service')), confirming('stop-service'), settled)).toEqual({
			refused: 'a pasted word does not count: type it',
		});
	});

	it('is not confirmed by an Enter that came with other keys', () => {
		expect(meant('enter', confirming('stop-service', {typed: 'int4'}), settled, true)).toMatchObject({
			refused: expect.stringContaining('do not act'),
		});
		expect(meant('1', over({type: 'operations', index: 0}), settled, true)).toMatchObject({
			refused: expect.stringContaining('do not act'),
		});
	});

	it('lets a wide plan be read for three seconds', () => {
		const state = confirming('recover', {typed: 'kpro6/ct129'});
		expect(state.view.overlays[0]).toMatchObject({plan: {tier: 3, confirmWord: 'kpro6/ct129'}});
		expect(meant('enter', state, {...MOMENT, nowMs: NOW + 1_200})).toEqual({
			refused: 'read it first: Enter works in 2 s',
		});
		expect(meant('enter', state, {...MOMENT, nowMs: NOW + 3_000})).toEqual({type: 'accept'});
	});

	it('lets a recovery be taken step by step, and nothing else', () => {
		expect(meant('tab', confirming('recover'))).toEqual({type: 'toggle-stepwise'});
		expect(meant('tab', confirming('stop-service'))).toEqual({refused: 'only a recovery goes step by step'});
	});

	it('goes on from a hold by keys that mean nothing elsewhere, alone, and not in the first 300 ms', () => {
		expect(meant('y', waiting(), settled)).toEqual([{type: 'go-on', choice: 'next'}]);
		expect(meant('Y', waiting(), settled)).toEqual([{type: 'go-on', choice: 'rest'}]);
		expect(meant('escape', waiting(), settled)).toEqual([{type: 'go-on', choice: 'stop'}]);
		for (const key of ['y', 'Y', 'escape']) {
			expect(meant(key, waiting(), soon)).toEqual({refused: 'too soon: the dialog has only just opened'});
			expect(meant(key, waiting(), settled, true)).toMatchObject({refused: expect.stringContaining('do not act')});
		}
		expect(meant('enter', waiting(), settled)).toMatchObject({refused: expect.stringContaining('does nothing here')});
		const aside = {...waiting(), view: sampleState().view};
		for (const key of ['y', 'Y']) expect(meant(key, aside)).toHaveProperty('refused');
		expect(meant('H', aside)).toEqual({type: 'open', overlay: 'held'});
		expect(meant('H', sampleState())).toEqual({refused: 'no recovery waits for you'});
	});

	it('stands on Cancel for what can be undone', () => {
		const state = confirming('stop-service');
		const [dialog] = state.view.overlays;
		if (dialog?.type !== 'confirm') throw new Error('no dialog');
		const mild = (button: 'cancel' | 'go') => over({...dialog, plan: {...dialog.plan, tier: 1}, button});
		expect(meant('enter', mild('cancel'))).toEqual({type: 'back'});
		expect(meant('right', mild('cancel'))).toEqual({type: 'button', to: 'go'});
		expect(meant('enter', mild('go'))).toEqual({type: 'accept'});
		expect(meant('y', mild('cancel'))).toEqual([{type: 'button', to: 'go'}, {type: 'accept'}]);
		expect(meant('y', mild('cancel'), MOMENT, true)).toMatchObject({refused: expect.stringContaining('do not act')});
	});
});

describe('what is read from the table', () => {
	it('lists in the footer only what works now, most useful first', () => {
		const keys = (state: ConsoleState) =>
			footerKeys(scopesOf(state), state, MOMENT).map(({key, label}) => `${key} ${label}`);
		expect(keys(sampleState())).toEqual([
			'o operations',
			'q quit',
			'? help',
			'Enter why',
			'x signal',
			'A alerts',
			'Tab pane',
			'z zoom',
			': palette',
			'l log',
			'p freeze',
			'j move',
		]);
		expect(keys(sampleState({view: {focus: 'mounts'}}))).not.toContain('x signal');
		expect(keys(over({type: 'filter', pane: 'log', text: ''}))).toEqual(['Enter keep', 'Esc clear']);
	});

	it('writes keys as people do', () => {
		expect(['ctrl+d', 'shift+tab', 'f5', 'pageup', 'G', '/'].map(keyLabel)).toEqual([
			'Ctrl-D',
			'Shift-Tab',
			'F5',
			'PgUp',
			'G',
			'/',
		]);
	});

	it('makes the key list', () => {
		const lines = keyList().split('\n');
		expect(lines.slice(0, 3)).toEqual([
			'| group | keys | where | does |',
			'|---|---|---|---|',
			'| Leave | `q` | panes | quit (back from zoom first); what runs on the host goes on |',
		]);
		expect(lines).toHaveLength(bindings.length + 3);
	});

	it('has a digit for every operation that is offered, and none twice', () => {
		const digits = Object.values(OPERATION_KEYS);
		expect(new Set(digits).size).toBe(digits.length);
		expect(OPERATION_KEYS['stop-service']).toBe('1');
		expect(UNIT).toContain('int4');
	});
});
