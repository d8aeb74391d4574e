import {selectHeader} from '../state/selectors/header.ts';
import {selectMounts} from '../state/selectors/mounts.ts';
import type {ConsoleState, PaneId} from '../state/state.ts';
import {bytes} from './format.ts';
import {summaryOf} from './panes/summary.tsx';
import {clean} from './safe.ts';
import type {Row} from './theme.ts';

const PANES: readonly PaneId[] = ['gpu', 'processes', 'mounts', 'extraction', 'operations'];

/** The same words as the screen's, as lines without colour: for `relight status` and for pipes. Worst first. */
export function statusLines(state: ConsoleState): readonly string[] {
	const {host, route} = selectHeader(state);
	const passed = state.route.passedOver.map(({label, reason}) => `; not by ${label}: ${reason}`).join('');
	return [
		`${host}  ${route.state} by ${route.label}${passed}`,
		...state.alerts.map(({level, words, remedy}) => `${level.toUpperCase()}  ${words}  (${remedy})`),
		...PANES.map(pane => plain(summaryOf(pane, state))),
		...selectMounts(state).rows.map(
			({path, state: word, availableBytes, totalBytes, notes}) =>
				`   ${word.padEnd(12)} ${path}  ${bytes(availableBytes)} free of ${bytes(totalBytes)}  ${notes}`,
		),
	].map(clean);
}

const plain = (row: Row): string =>
	row
		.map(span => span.text)
		.join('')
		.trimEnd();
