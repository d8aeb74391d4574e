import {type Binding, GROUPS, type Scope} from './binding.ts';
import {bindings, keyLabel} from './bindings.ts';

const PLACES: Readonly<Partial<Record<Scope, string>>> = {
	global: 'panes',
	always: 'everywhere',
	layer: 'any list or text on top',
	gpu: 'GPU pane',
	processes: 'PROC pane',
	log: 'LOG pane',
	menu: 'operations menu',
	confirm: 'confirm, tier 1',
	ask: 'question of a route',
	'ask-yes': 'unknown host key',
	held: 'recovery that waits',
	'confirm-word': 'confirm, tier 2 and 3',
};

export const placeOf = (scope: Scope): string => PLACES[scope] ?? scope;

export const keysOf = (binding: Binding): string => binding.keys.map(keyLabel).join(' ');

/** The whole table as markdown, for the README and `relight keys`. */
export function keyList(table: readonly Binding[] = bindings): string {
	const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('|', '\\|');
	const lines = GROUPS.flatMap(group =>
		table
			.filter(binding => binding.group === group)
			.map(binding => {
				const keys = binding.keys.map(key => `\`${keyLabel(key)}\``).join(' ');
				return `| ${group} | ${keys.replaceAll('|', '\\|')} | ${placeOf(binding.scope)} | ${escaped(binding.says)} |`;
			}),
	);
	return ['| group | keys | where | does |', '|---|---|---|---|', ...lines, ''].join('\n');
}
