import {operationEntry} from '../../ops/operations/catalogue.ts';
import {OFFERED} from '../../state/selectors/offers.ts';
import type {ConsoleState} from '../../state/state.ts';
import {PANES} from '../../state/state.ts';
import type {Binding, Scope} from './binding.ts';
import {operationKeys} from './operation-keys.ts';
import {paneBindings} from './pane-bindings.ts';

/** One action by name, with the key that does the same. */
export type PaletteEntry = Pick<Binding, 'says' | 'means'> & {readonly keys: string};

/** Every action that is not a motion, those of other panes left out; the words typed so far must all occur. */
export function paletteEntries(state: ConsoleState, text: string): readonly PaletteEntry[] {
	const here = new Set<Scope>([state.view.focus, 'global']);
	const actions = paneBindings
		.filter(binding => binding.group !== 'Move' && (here.has(binding.scope) || !isPane(binding.scope)))
		.map(({says, means, keys}): PaletteEntry => ({says, means, keys: keys.join(' ')}));
	const operations = OFFERED.flatMap((operation): PaletteEntry[] => {
		const entry = operationEntry(operation);
		return entry
			? [
					{
						says: `${operation}: ${entry.title}`,
						keys: operationKeys(operation) ?? '',
						means: () => ({type: 'request-operation', operation}),
					},
				]
			: [];
	});
	const logs = (['server', 'extraction', 'kernel'] as const).map(
		(source): PaletteEntry => ({
			says: `log of the ${source}`,
			keys: 'l',
			means: () => [
				{type: 'focus', pane: 'log'},
				{type: 'log-source', source},
			],
		}),
	);
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return [...operations, ...actions, ...logs].filter(entry => {
		const haystack = `${entry.says} ${entry.keys}`.toLowerCase();
		return words.every(word => haystack.includes(word));
	});
}

const isPane = (scope: Scope): boolean => PANES.some(pane => pane === scope);
