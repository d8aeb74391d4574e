import type {ConsoleState} from '../../state/state.ts';
import {useConsole} from '../hooks/use-console.ts';
import {scopesOf} from '../keymap/binding.ts';
import {type FooterKey, footerKeys} from '../keymap/bindings.ts';
import {type Place, Region} from '../parts/region.tsx';
import {type Row, rowWidth, type Span, span} from '../theme.ts';

export function Footer({place}: {readonly place: Place}) {
	// The text is compared, so that a tick that changes no key draws nothing.
	const shown = useConsole(state => JSON.stringify(footerRow(state, place.width)));
	return <Region place={place} rows={[JSON.parse(shown) as Row]} />;
}

/** The answer to the last key while it is new, else the keys that work now. */
export function footerRow(state: ConsoleState, width: number): Row {
	const {hint} = state.view;
	if (hint && hint.until > state.nowMs) return [span(` ${hint.words}`, 'warn')];
	const moment = {nowMs: state.nowMs, reach: {at: 0, last: 1, page: 1}};
	return keyRow(footerKeys(scopesOf(state), state, moment), width);
}

/** As many as fit, most useful first. */
export function keyRow(keys: readonly FooterKey[], width: number): Row {
	const row: Span[] = [];
	for (const {key, label} of keys) {
		const next = [span(` ${key}`, 'title'), span(` ${label} `, 'dim')];
		if (rowWidth(row) + rowWidth(next) > width) continue;
		row.push(...next);
	}
	return row;
}
