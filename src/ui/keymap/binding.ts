import type {Refusal} from '../../ops/operations/operation.ts';
import type {Action} from '../../state/actions.ts';
import type {ConsoleState, PaneId} from '../../state/state.ts';

/**
 * A *binding* is one row of the key table: where it counts, its keys, what it says, and what it means now: an action, a
 * few in a row, or the reason why there is none. Help, footer, palette and the key list are read from the same rows.
 * A *scope* is a place that has the keyboard: the top layer, the focused pane, the panes in general, or everywhere.
 */
export type Binding = {
	readonly scope: Scope;
	readonly keys: readonly string[];
	readonly says: string;
	readonly group: Group;
	/** Place in the footer, 1 stays longest, and the words there. */
	readonly hint?: {readonly rank: number; readonly label: string};
	/** Starts, confirms or arms something: counts only as a key that came alone. */
	readonly acts?: true;
	means(state: ConsoleState, moment: Moment): Meaning;
};

export type Meaning = Action | readonly Action[] | Refusal;

/** What a key can need to know beside the state. */
export type Moment = {
	/** Wall clock of the key, epoch ms: the state's own is only as new as the last tick. */
	readonly nowMs: number;
	/** How far the list or text on top reaches: where it stands, its last position, and how much is seen at once. */
	readonly reach: {readonly at: number; readonly last: number; readonly page: number};
};

export type Scope = PaneId | LayerScope | 'global' | 'always';

export type LayerScope =
	| 'help'
	| 'alerts'
	| 'command-log'
	| 'palette'
	| 'filter'
	| 'menu'
	| 'signals'
	| 'details'
	| 'unlock'
	| 'quit'
	/** A recovery that waits before its next operation. */
	| 'held'
	/** Tier 1: two buttons. */
	| 'confirm'
	/** Tier 2 and 3: a word must be typed. */
	| 'confirm-word'
	/** What a route asks, and the one question that wants the word yes. */
	| 'ask'
	| 'ask-yes'
	/** Common to every layer that scrolls or lists and takes no text. */
	| 'layer';

export const GROUPS = ['Leave', 'Move', 'Panes', 'Read', 'Act', 'Find', 'Dialogs'] as const;
export type Group = (typeof GROUPS)[number];

/** In these scopes printable keys are text. */
export const TEXT_SCOPES: ReadonlySet<Scope> = new Set(['palette', 'filter', 'confirm-word', 'ask', 'ask-yes']);

export const refused = (why: string): Refusal => ({refused: why});
export const isRefused = (meaning: Meaning): meaning is Refusal => 'refused' in meaning;

/** Innermost first. */
export function scopesOf({view}: ConsoleState): readonly Scope[] {
	const top = view.overlays.at(-1);
	if (!top) return [view.focus, 'global', 'always'];
	switch (top.type) {
		case 'palette':
		case 'filter':
			return [top.type, 'always'];
		case 'confirm':
			return [top.plan.tier === 1 ? 'confirm' : 'confirm-word', 'always'];
		case 'ask':
			return [top.question.kind === 'host-key' ? 'ask-yes' : 'ask', 'always'];
		case 'held':
			return ['held', 'always'];
		case 'operations':
			return ['menu', 'layer', 'always'];
		default:
			return [top.type, 'layer', 'always'];
	}
}
