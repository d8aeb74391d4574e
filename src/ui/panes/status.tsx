import {selectAlerts, selectHeader} from '../../state/selectors/header.ts';
import type {ConsoleState, PaneId} from '../../state/state.ts';
import {useConsole, useTools} from '../hooks/use-console.ts';
import {type Place, Region} from '../parts/region.tsx';
import {type Row, rowWidth} from '../theme.ts';
import {alertRow, headerRow} from './header.tsx';
import {summaryOf} from './summary.tsx';

/** A screen too small for panes still says the worst thing first. */
export function Status({place}: {readonly place: Place}) {
	const {store} = useTools();
	useConsole(state => state.nowMs);
	useConsole(state => state.view);
	return <Region place={place} rows={statusRows(store.getState(), place.width, place.height)} />;
}

const ORDER: readonly PaneId[] = ['gpu', 'extraction', 'mounts', 'operations', 'processes', 'log'];

export function statusRows(state: ConsoleState, width: number, height: number): readonly Row[] {
	const alerts = selectAlerts(state);
	const header = headerRow(selectHeader(state), alerts, width);
	const alert = alertRow(alerts, width);
	if (height === 1) return [rowWidth(alert) > 0 ? alert : summaryOf('gpu', state)];
	const hint =
		state.view.hint && state.view.hint.until > state.nowMs
			? [[{text: ` ${state.view.hint.words}`, tone: 'warn' as const}]]
			: [];
	return [...hint, header, ...(rowWidth(alert) > 0 ? [alert] : []), ...ORDER.map(pane => summaryOf(pane, state))].slice(
		0,
		height,
	);
}
