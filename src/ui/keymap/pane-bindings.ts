import {holdersOf} from '../../ops/probes/held-memory.ts';
import {selectAlerts} from '../../state/selectors/header.ts';
import {selectedKey} from '../../state/selectors/row-keys.ts';
import type {ConsoleState} from '../../state/state.ts';
import {PANES} from '../../state/state.ts';
import {PANE_NAMES} from '../parts/title.ts';
import {type Binding, type Meaning, refused} from './binding.ts';
import {motions} from './motions.ts';

/** Keys while no layer is open. */
// biome-ignore format: a table reads by its rows
export const paneBindings: readonly Binding[] = [
	{scope: 'global', keys: ['q'], says: 'quit (back from zoom first); what runs on the host goes on', group: 'Leave', hint: {rank: 2, label: 'quit'}, means: () => ({type: 'back'})},
	{scope: 'global', keys: ['escape'], says: 'clear the filter, leave zoom; never quits', group: 'Leave', means: () => ({type: 'escape'})},
	...motions('global', 'Move'),

	{scope: 'global', keys: ['tab'], says: 'next pane', group: 'Panes', hint: {rank: 7, label: 'pane'}, means: () => ({type: 'focus-next', by: 1})},
	{scope: 'global', keys: ['shift+tab'], says: 'previous pane', group: 'Panes', means: () => ({type: 'focus-next', by: -1})},
	...PANES.map((pane, index): Binding => ({scope: 'global', keys: [String(index + 1)], says: `pane ${index + 1} ${PANE_NAMES[pane]}`, group: 'Panes', means: () => ({type: 'focus', pane})})),
	{scope: 'global', keys: ['z'], says: 'zoom the pane, and back', group: 'Panes', hint: {rank: 8, label: 'zoom'}, means: () => ({type: 'zoom'})},

	{scope: 'global', keys: ['enter'], says: 'why: cause chain and details of the row', group: 'Read', hint: {rank: 3, label: 'why'}, means: () => ({type: 'open', overlay: 'details'})},
	{scope: 'global', keys: ['/', 'f4', '\\'], says: 'filter the pane; !text inverts', group: 'Read', hint: {rank: 6, label: 'filter'}, means: filter},
	{scope: 'global', keys: ['l'], says: 'log pane; there, the next log (server, extraction, kernel)', group: 'Read', hint: {rank: 11, label: 'log'}, means: nextLog},
	{scope: 'log', keys: ['F'], says: 'follow the log, or stand still', group: 'Read', hint: {rank: 5, label: 'follow'}, means: () => ({type: 'toggle-follow'})},
	{scope: 'log', keys: ['w'], says: 'wrap long lines', group: 'Read', hint: {rank: 6, label: 'wrap'}, means: () => ({type: 'toggle-wrap'})},
	{scope: 'processes', keys: ['s', 'f6'], says: 'sort by the next column', group: 'Read', hint: {rank: 9, label: 'sort'}, means: () => ({type: 'sort-next'})},
	{scope: 'processes', keys: ['I'], says: 'turn the order round', group: 'Read', means: () => ({type: 'invert-sort'})},
	{scope: 'processes', keys: ['t', 'f5'], says: 'tree or flat list', group: 'Read', hint: {rank: 10, label: 'tree'}, means: () => ({type: 'toggle-tree'})},
	{scope: 'global', keys: ['p'], says: 'freeze the display; looking and alerts go on', group: 'Read', hint: {rank: 12, label: 'freeze'}, means: () => ({type: 'toggle-freeze'})},
	{scope: 'global', keys: ['r'], says: 'look at everything now', group: 'Read', means: () => ({type: 'look', probes: 'all'})},
	{scope: 'global', keys: ['C'], says: 'try the routes again, and ask again for keys that were skipped', group: 'Read', means: reconnect},
	{scope: 'global', keys: ['m'], says: 'set a mark in the timeline', group: 'Read', means: () => ({type: 'mark'})},

	{scope: 'global', keys: ['o'], says: 'operations: what can be done, and why not', group: 'Act', hint: {rank: 1, label: 'operations'}, means: () => ({type: 'open', overlay: 'operations'})},
	{scope: 'global', keys: ['H'], says: 'back to the step that a recovery waits with', group: 'Act', hint: {rank: 0, label: 'the step that waits'}, means: held},
	{scope: 'processes', keys: ['x', 'f9'], says: 'send a signal to the process', group: 'Act', acts: true, hint: {rank: 4, label: 'signal'}, means: signalProcess},
	{scope: 'gpu', keys: ['x', 'f9'], says: 'send a signal to the holder of the card', group: 'Act', acts: true, hint: {rank: 4, label: 'signal'}, means: signalHolder},
	{scope: 'global', keys: ['!'], says: 'dry run on or off: show the commands, send nothing', group: 'Act', means: () => ({type: 'toggle-dry-run'})},
	{scope: 'global', keys: ['@'], says: 'command log: what was run, and how it ended', group: 'Act', means: () => ({type: 'open', overlay: 'command-log'})},
	{scope: 'global', keys: ['W'], says: 'leave read-only (asks), or return to it', group: 'Act', acts: true, means: armed},

	{scope: 'global', keys: [':', 'ctrl+p'], says: 'palette: every action by name', group: 'Find', hint: {rank: 9, label: 'palette'}, means: () => ({type: 'open', overlay: 'palette'})},
	{scope: 'global', keys: ['A'], says: 'alerts', group: 'Find', hint: {rank: 5, label: 'alerts'}, means: () => ({type: 'open', overlay: 'alerts'})},
	{scope: 'global', keys: ['a'], says: 'acknowledge all alerts', group: 'Find', means: acknowledge},
	{scope: 'global', keys: ['?', 'f1'], says: 'help: keys of this pane, then all', group: 'Find', hint: {rank: 2, label: 'help'}, means: () => ({type: 'open', overlay: 'help'})},
];

function filter({view}: ConsoleState): Meaning {
	const filterable = view.focus === 'processes' || view.focus === 'log' || view.focus === 'operations';
	return filterable
		? {type: 'open', overlay: 'filter'}
		: refused(`${PANE_NAMES[view.focus]} is short enough without a filter`);
}

function nextLog({view}: ConsoleState): Meaning {
	return view.focus === 'log' ? {type: 'log-source', source: 'next'} : {type: 'focus', pane: 'log'};
}

function armed({session}: ConsoleState): Meaning {
	return session.readOnly ? {type: 'open', overlay: 'unlock'} : {type: 'read-only', on: true};
}

function acknowledge(state: ConsoleState): Meaning {
	return selectAlerts(state).unacknowledged > 0
		? {type: 'acknowledge', alertId: 'all'}
		: refused('no alert waits to be seen');
}

function reconnect({route}: ConsoleState): Meaning {
	return route.state === 'up' && route.passedOver.length === 0
		? refused('the best route works: there is nothing to try again')
		: {type: 'reconnect'};
}

function held({operation}: ConsoleState): Meaning {
	return operation.phase === 'running' && operation.held
		? {type: 'open', overlay: 'held'}
		: refused('no recovery waits for you');
}

function signalProcess(state: ConsoleState): Meaning {
	const key = selectedKey(state, 'processes');
	if (key === null) return refused('no process is listed');
	return signal(state, key);
}

function signalHolder(state: ConsoleState): Meaning {
	const uuid = selectedKey(state, 'gpu');
	const gpu = state.facts.gpus?.last?.value.cards.find(card => card.uuid === uuid);
	const holders = gpu ? holdersOf(gpu, state.facts.holders?.last?.value ?? null) : [];
	const [holder] = holders;
	if (!holder) return refused('nothing is seen to hold this card');
	if (holders.length > 1) return refused(`${holders.length} processes hold this card: pick one in pane 2`);
	return signal(state, `${holder.pid}@${holder.startTicks ?? '?'}`);
}

function signal({session}: ConsoleState, key: string): Meaning {
	if (session.readOnly) return refused('read-only: W to leave');
	if (key.endsWith('@?')) return refused('this pid is not visible here: look from the hypervisor');
	return [
		{type: 'select', pane: 'processes', key},
		{type: 'open', overlay: 'signals'},
	];
}
