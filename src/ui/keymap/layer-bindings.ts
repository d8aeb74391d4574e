import {lockWords} from '../../ops/act-lock.ts';
import type {Action} from '../../state/actions.ts';
import {READING_MS, TYPE_AHEAD_MS} from '../../state/confirm.ts';
import {mayBreak, othersLock} from '../../state/others-lock.ts';
import {selectAlerts} from '../../state/selectors/header.ts';
import {OFFERED, selectOffers} from '../../state/selectors/offers.ts';
import type {ConsoleState, Overlay} from '../../state/state.ts';
import {type Binding, type Meaning, type Moment, refused} from './binding.ts';
import {motions, unlettered} from './motions.ts';
import {OPERATION_KEYS} from './operation-keys.ts';
import {paletteEntries} from './palette-entries.ts';

/** Keys while a layer is open: the top one has the keyboard. */
// biome-ignore format: a table reads by its rows
export const layerBindings: readonly Binding[] = [
	{scope: 'layer', keys: ['q', 'escape'], says: 'close', group: 'Dialogs', hint: {rank: 1, label: 'close'}, means: () => ({type: 'back'})},
	...motions('layer', 'Dialogs'),

	{scope: 'help', keys: ['?', 'f1', 'h', 'enter'], says: 'close', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'details', keys: ['enter'], says: 'close', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'command-log', keys: ['@', 'enter'], says: 'close', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'alerts', keys: ['A'], says: 'close', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'alerts', keys: ['a'], says: 'acknowledge this one', group: 'Dialogs', hint: {rank: 2, label: 'acknowledge'}, means: acknowledge},
	{scope: 'alerts', keys: ['enter'], says: 'go to the pane it is about', group: 'Dialogs', hint: {rank: 3, label: 'go to its pane'}, means: followAlert},

	...OFFERED.map((operation): Binding => ({
		scope: 'menu',
		keys: [OPERATION_KEYS[operation] ?? operation],
		says: `plan ${operation}`,
		group: 'Act',
		acts: true,
		means: state => offered(state, OFFERED.indexOf(operation)),
	})),
	{scope: 'menu', keys: ['0'], says: 'abort the running operation at its next safe point', group: 'Act', acts: true, hint: {rank: 4, label: 'abort'}, means: abort},
	{scope: 'menu', keys: ['B'], says: 'break the action lock of an operator who is gone', group: 'Act', acts: true, means: breakable},
	{scope: 'menu', keys: ['enter'], says: 'plan the selected operation', group: 'Act', acts: true, hint: {rank: 2, label: 'plan it'}, means: state => offered(state, topOf(state, 'operations')?.index ?? 0)},
	{scope: 'menu', keys: ['o'], says: 'close', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'menu', keys: ['!'], says: 'dry run on or off', group: 'Act', hint: {rank: 5, label: 'dry run'}, means: () => ({type: 'toggle-dry-run'})},

	{scope: 'signals', keys: ['enter'], says: 'plan this signal (the first line is Cancel)', group: 'Act', acts: true, hint: {rank: 2, label: 'choose'}, means: () => ({type: 'accept'})},
	{scope: 'unlock', keys: ['y', 'enter'], says: 'leave read-only', group: 'Act', acts: true, hint: {rank: 2, label: 'leave read-only'}, means: (state, moment) => settled({type: 'accept'})(state, moment)},
	{scope: 'unlock', keys: ['n'], says: 'stay read-only', group: 'Dialogs', means: () => ({type: 'back'})},
	{scope: 'quit', keys: ['y', 'enter'], says: 'quit', group: 'Leave', acts: true, hint: {rank: 2, label: 'quit'}, means: (state, moment) => settled({type: 'accept'})(state, moment)},
	{scope: 'quit', keys: ['n'], says: 'stay', group: 'Dialogs', means: () => ({type: 'back'})},

	{scope: 'palette', keys: ['escape'], says: 'close', group: 'Dialogs', hint: {rank: 2, label: 'close'}, means: () => ({type: 'back'})},
	{scope: 'palette', keys: ['enter'], says: 'do the selected action', group: 'Dialogs', acts: true, hint: {rank: 1, label: 'do it'}, means: fromPalette},
	{scope: 'palette', keys: ['backspace'], says: 'erase', group: 'Dialogs', means: () => ({type: 'erase'})},
	...motions('palette', 'Dialogs', unlettered),

	{scope: 'filter', keys: ['escape'], says: 'clear the filter', group: 'Dialogs', hint: {rank: 2, label: 'clear'}, means: () => ({type: 'escape'})},
	{scope: 'filter', keys: ['enter'], says: 'keep the filter', group: 'Dialogs', hint: {rank: 1, label: 'keep'}, means: () => ({type: 'accept'})},
	{scope: 'filter', keys: ['backspace'], says: 'erase', group: 'Dialogs', means: () => ({type: 'erase'})},

	{scope: 'confirm', keys: ['q', 'escape', 'n'], says: 'cancel', group: 'Dialogs', hint: {rank: 1, label: 'cancel'}, means: () => ({type: 'back'})},
	{scope: 'confirm', keys: ['y'], says: 'do it', group: 'Act', acts: true, hint: {rank: 2, label: 'do it'}, means: (state, moment) => settled({type: 'button', to: 'go'}, {type: 'accept'})(state, moment)},
	{scope: 'confirm', keys: ['left', 'right', 'tab', 'shift+tab', 'h', 'l'], says: 'other button', group: 'Dialogs', hint: {rank: 4, label: 'other button'}, means: otherButton},
	{scope: 'confirm', keys: ['enter'], says: 'press the button', group: 'Act', acts: true, hint: {rank: 3, label: 'press the button'}, means: pressButton},
	{scope: 'confirm', keys: ['!'], says: 'dry run on or off', group: 'Act', hint: {rank: 5, label: 'dry run'}, means: () => ({type: 'toggle-dry-run'})},
	...motions('confirm', 'Dialogs'),

	{scope: 'confirm-word', keys: ['escape'], says: 'cancel', group: 'Dialogs', hint: {rank: 1, label: 'cancel'}, means: () => ({type: 'back'})},
	{scope: 'confirm-word', keys: ['enter'], says: 'do it, once the word is typed', group: 'Act', acts: true, hint: {rank: 2, label: 'do it'}, means: confirmWord},
	{scope: 'confirm-word', keys: ['tab'], says: 'a recovery: all at once, or step by step', group: 'Act', hint: {rank: 3, label: 'step by step'}, means: otherPace},
	{scope: 'confirm-word', keys: ['backspace'], says: 'erase', group: 'Dialogs', means: () => ({type: 'erase'})},
	...motions('confirm-word', 'Dialogs', unlettered),

	{scope: 'held', keys: ['y'], says: 'do the step that is shown', group: 'Act', acts: true, hint: {rank: 1, label: 'do this step'}, means: (state, moment) => settled({type: 'go-on', choice: 'next'})(state, moment)},
	{scope: 'held', keys: ['Y'], says: 'do it and all the rest', group: 'Act', acts: true, hint: {rank: 2, label: 'all the rest'}, means: (state, moment) => settled({type: 'go-on', choice: 'rest'})(state, moment)},
	{scope: 'held', keys: ['escape'], says: 'stop here; recover goes on from there', group: 'Act', acts: true, hint: {rank: 3, label: 'stop here'}, means: (state, moment) => settled({type: 'go-on', choice: 'stop'})(state, moment)},
	{scope: 'held', keys: ['tab', 'q'], says: 'lay it aside; it goes on waiting', group: 'Dialogs', hint: {rank: 4, label: 'look around'}, means: () => ({type: 'back'})},
	...motions('held', 'Dialogs'),

	{scope: 'ask', keys: ['enter'], says: 'give the answer', group: 'Dialogs', acts: true, hint: {rank: 1, label: 'answer'}, means: (state, moment) => settled({type: 'accept'})(state, moment)},
	{scope: 'ask', keys: ['escape'], says: 'skip it: the route goes on without', group: 'Dialogs', hint: {rank: 2, label: 'skip'}, means: () => ({type: 'back'})},
	{scope: 'ask', keys: ['backspace'], says: 'erase', group: 'Dialogs', means: () => ({type: 'erase'})},
	{scope: 'ask-yes', keys: ['enter'], says: 'keep the key, once yes is typed', group: 'Dialogs', acts: true, hint: {rank: 1, label: 'keep it'}, means: (state, moment) => settled({type: 'accept'})(state, moment)},
	{scope: 'ask-yes', keys: ['escape'], says: 'refuse the key', group: 'Dialogs', hint: {rank: 2, label: 'refuse'}, means: () => ({type: 'back'})},
	{scope: 'ask-yes', keys: ['backspace'], says: 'erase', group: 'Dialogs', means: () => ({type: 'erase'})},
];

function topOf<T extends Overlay['type']>({view}: ConsoleState, type: T): Extract<Overlay, {type: T}> | null {
	const top = view.overlays.at(-1);
	return top?.type === type ? (top as Extract<Overlay, {type: T}>) : null;
}

function acknowledge(state: ConsoleState): Meaning {
	const alert = selectAlerts(state).rows[topOf(state, 'alerts')?.index ?? 0];
	if (!alert) return refused('there is no alert');
	return alert.acknowledged ? refused('this one has been acknowledged') : {type: 'acknowledge', alertId: alert.id};
}

function followAlert(state: ConsoleState): Meaning {
	const alert = selectAlerts(state).rows[topOf(state, 'alerts')?.index ?? 0];
	return alert ? [{type: 'back'}, {type: 'focus', pane: alert.pane}] : {type: 'back'};
}

function offered(state: ConsoleState, index: number): Meaning {
	const operation = OFFERED[index];
	const offer = selectOffers(state).find(one => one.operation === operation);
	if (!operation || !offer) return refused('there is no such operation here');
	return offer.refused === null ? {type: 'request-operation', operation} : refused(offer.refused);
}

function breakable(state: ConsoleState): Meaning {
	const held = othersLock(state);
	if (!held) return refused('nobody else acts on this host');
	return mayBreak(held, state.session) ? {type: 'break-lock'} : refused(lockWords(held));
}

function abort({operation}: ConsoleState): Meaning {
	return operation.phase === 'running' ? {type: 'abort-operation'} : refused('no operation is running');
}

function fromPalette(state: ConsoleState, moment: Moment): Meaning {
	const top = topOf(state, 'palette');
	const entries = paletteEntries(state, top?.text ?? '');
	const entry = entries[Math.min(top?.index ?? 0, entries.length - 1)];
	if (!entry) return refused('nothing matches');
	const meaning = entry.means(state, moment);
	if ('refused' in meaning) return meaning;
	return [{type: 'back'}, ...(isList(meaning) ? meaning : [meaning])];
}

const isList = (meaning: Action | readonly Action[]): meaning is readonly Action[] => Array.isArray(meaning);

/** A dialog that has only just opened takes nothing: keys on their way over a slow link were meant for something else. */
function tooSoon({view}: ConsoleState, {nowMs}: Moment): Meaning | null {
	const top = view.overlays.at(-1);
	const fresh = top && 'openedAt' in top && nowMs - top.openedAt < TYPE_AHEAD_MS;
	return fresh ? refused('too soon: the dialog has only just opened') : null;
}

const settled =
	(...actions: readonly Action[]) =>
	(state: ConsoleState, moment: Moment): Meaning =>
		tooSoon(state, moment) ?? actions;

function otherButton(state: ConsoleState): Meaning {
	return {type: 'button', to: topOf(state, 'confirm')?.button === 'go' ? 'cancel' : 'go'};
}

function pressButton(state: ConsoleState, moment: Moment): Meaning {
	return tooSoon(state, moment) ?? (topOf(state, 'confirm')?.button === 'go' ? {type: 'accept'} : {type: 'back'});
}

function otherPace(state: ConsoleState): Meaning {
	return topOf(state, 'confirm')?.plan.operation === 'recover'
		? {type: 'toggle-stepwise'}
		: refused('only a recovery goes step by step');
}

function confirmWord(state: ConsoleState, moment: Moment): Meaning {
	const dialog = topOf(state, 'confirm');
	if (!dialog) return refused('there is nothing to confirm');
	const {plan, typed, openedAt} = dialog;
	if (typed !== plan.confirmWord)
		return tooSoon(state, moment) ?? refused(`type ${plan.confirmWord} first; Esc cancels`);
	const left = plan.tier === 3 ? READING_MS - (moment.nowMs - openedAt) : 0;
	return (
		tooSoon(state, moment) ??
		(left > 0 ? refused(`read it first: Enter works in ${Math.ceil(left / 1000)} s`) : {type: 'accept'})
	);
}
