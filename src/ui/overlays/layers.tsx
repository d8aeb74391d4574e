import {selectAlerts} from '../../state/selectors/header.ts';
import type {ConsoleState} from '../../state/state.ts';
import {useConsole} from '../hooks/use-console.ts';
import {Region} from '../parts/region.tsx';
import {AlertsTable, alertsLayer} from './alerts.tsx';
import {askLayer} from './ask.ts';
import {confirmLayer} from './confirm.ts';
import {heldLayer} from './held.ts';
import {type Layer, layerRows, placeOf, type Screen} from './layer.ts';
import {operationsLayer, paletteLayer, signalsLayer} from './menus.ts';
import {commandLogLayer, detailsLayer, filterLayer, helpLayer, quitLayer, unlockLayer} from './texts.ts';

/** The layer that has the keyboard, or null when the panes have it. */
export function topLayer(state: ConsoleState, screen: Screen): Layer | null {
	const top = state.view.overlays.at(-1);
	if (!top) return null;
	switch (top.type) {
		case 'help':
			return helpLayer(top, state, screen);
		case 'alerts':
			return alertsLayer(top, state, screen);
		case 'command-log':
			return commandLogLayer(top, state, screen);
		case 'palette':
			return paletteLayer(top, state, screen);
		case 'filter':
			return filterLayer(top);
		case 'operations':
			return operationsLayer(top, state, screen);
		case 'signals':
			return signalsLayer(top, state);
		case 'details':
			return detailsLayer(top, state, screen);
		case 'unlock':
			return unlockLayer(state);
		case 'quit':
			return quitLayer(state);
		case 'held':
			return heldLayer(top, state, screen);
		case 'confirm':
			return confirmLayer(top, state, screen);
		case 'ask':
			return askLayer(top, screen);
	}
}

export function Layers({screen}: {readonly screen: Screen}) {
	return useConsole(state => state.view.overlays.length > 0) ? <TopLayer screen={screen} /> : null;
}

/** Follows the whole state, but only while it is open. */
function TopLayer({screen}: {readonly screen: Screen}) {
	const state = useConsole(whole);
	const layer = topLayer(state, screen);
	if (!layer) return null;
	const alerts = selectAlerts(state);
	if (state.view.overlays.at(-1)?.type === 'alerts' && alerts.rows.length > 0) {
		const height = Math.min(3 + 2 * alerts.rows.length, Math.max(5, screen.height - 3));
		return (
			<AlertsTable
				model={alerts}
				index={layer.stands.at}
				place={{left: 1, top: Math.min(2, Math.max(0, screen.height - height)), width: screen.width - 2, height}}
			/>
		);
	}
	const place = placeOf(layer, screen);
	return <Region place={place} rows={layerRows(layer, place)} solid />;
}

const whole = (state: ConsoleState): ConsoleState => state;
