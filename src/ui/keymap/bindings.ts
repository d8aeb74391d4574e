import {TYPE_AHEAD_MS} from '../../state/confirm.ts';
import type {ConsoleState} from '../../state/state.ts';
import {type Binding, isRefused, type Meaning, type Moment, refused, type Scope, TEXT_SCOPES} from './binding.ts';
import type {Press} from './keys.ts';
import {layerBindings} from './layer-bindings.ts';
import {paneBindings} from './pane-bindings.ts';

/** Works whatever is open. None of these ever reaches the host. */
// biome-ignore format: a table reads by its rows
const alwaysBindings: readonly Binding[] = [
	{scope: 'always', keys: ['ctrl+c'], says: 'cancel a prompt or a wait; twice within 2 s quits', group: 'Leave', means: () => ({type: 'interrupt'})},
	{scope: 'always', keys: ['ctrl+z'], says: 'suspend, with the terminal restored', group: 'Leave', means: () => ({type: 'suspend'})},
	{scope: 'always', keys: ['ctrl+l'], says: 'draw the screen again', group: 'Read', means: () => ({type: 'redraw'})},
];

/** The whole table. Help, footer, palette and the key list read it too. */
export const bindings: readonly Binding[] = [...paneBindings, ...layerBindings, ...alwaysBindings];

/** What a key means now: innermost scope first, text where text is taken, and words for everything that does nothing. */
export function resolve(
	press: Press,
	scopes: readonly Scope[],
	state: ConsoleState,
	moment: Moment,
	table = bindings,
): Meaning {
	for (const scope of scopes) {
		const hit = table.find(binding => binding.scope === scope && binding.keys.includes(press.name));
		if (hit?.acts && press.burst) return refused('keys that arrive together, or pasted, do not act: press it alone');
		if (hit) return hit.means(state, moment);
		if (press.text !== null && TEXT_SCOPES.has(scope)) return typed(press, press.text, scope, state, moment);
	}
	return refused(`${keyLabel(press.name)} does nothing here${scopes.includes('global') ? ' (? for help)' : ''}`);
}

/**
 * A word that confirms is typed, never pasted. Letters that a slow link delivers together are typing; Enter confirms only
 * when it comes by itself.
 */
function typed(press: Press, text: string, scope: Scope, state: ConsoleState, {nowMs}: Moment): Meaning {
	const wantsWord = scope === 'confirm-word' || scope === 'ask-yes';
	if (wantsWord && press.name === 'paste') return refused('a pasted word does not count: type it');
	if (wantsWord || scope === 'ask') {
		const top = state.view.overlays.at(-1);
		if ((top?.type === 'confirm' || top?.type === 'ask') && nowMs - top.openedAt < TYPE_AHEAD_MS)
			return refused('too soon: the dialog has only just opened');
	}
	return {type: 'type', text};
}

export type FooterKey = {readonly key: string; readonly label: string; readonly rank: number};

/** The keys that work now, most useful first. */
export function footerKeys(
	scopes: readonly Scope[],
	state: ConsoleState,
	moment: Moment,
	table = bindings,
): readonly FooterKey[] {
	const taken = new Set<string>();
	return table
		.filter(binding => binding.hint && scopes.includes(binding.scope))
		.toSorted((a, b) => scopes.indexOf(a.scope) - scopes.indexOf(b.scope))
		.flatMap((binding): FooterKey[] => {
			const [key] = binding.keys;
			if (!key || !binding.hint || taken.has(key) || isRefused(binding.means(state, moment))) return [];
			taken.add(key);
			return [{key: keyLabel(key), label: binding.hint.label, rank: binding.hint.rank}];
		})
		.toSorted((a, b) => a.rank - b.rank);
}

/** A key as people write it. */
export function keyLabel(key: string): string {
	const special: Readonly<Record<string, string>> = {
		enter: 'Enter',
		escape: 'Esc',
		tab: 'Tab',
		space: 'Space',
		pageup: 'PgUp',
		pagedown: 'PgDn',
		home: 'Home',
		end: 'End',
		up: 'Up',
		down: 'Down',
		left: 'Left',
		right: 'Right',
		backspace: 'Backspace',
	};
	const parts = key.split('+');
	const last = parts.at(-1) || '+';
	const shown = special[last] ?? (/^f\d+$/.test(last) || parts.length > 1 ? last.toUpperCase() : last);
	return [
		...parts.slice(0, -1).map(part => (part === 'ctrl' ? 'Ctrl' : part === 'shift' ? 'Shift' : 'Alt')),
		shown,
	].join('-');
}
