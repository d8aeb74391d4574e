import type {OperationId} from '../ops/operations/operation.ts';
import type {Choice} from '../ops/runbook/pace.ts';
import type {LookNow, PaneId, SignalName} from './state.ts';

/** What the operator wants, as plain data. Never how: dispatch.ts knows that. */
export type Action =
	| {readonly type: 'focus'; readonly pane: PaneId}
	| {readonly type: 'focus-next'; readonly by: 1 | -1}
	| {readonly type: 'zoom'}
	/** Moves the selection, the menu index or the scroll of whatever is on top. `rows` may be ±1, ±page, ±Infinity. */
	| {readonly type: 'move'; readonly by: number}
	| {readonly type: 'select'; readonly pane: PaneId; readonly key: string | null}
	| {
			readonly type: 'open';
			readonly overlay:
				| 'help'
				| 'alerts'
				| 'command-log'
				| 'palette'
				| 'filter'
				| 'operations'
				| 'signals'
				| 'details'
				| 'unlock'
				| 'held';
	  }
	/** Close the top layer; at the bottom: quit (asks when a running operation would lose its watcher). */
	| {readonly type: 'back'}
	/** Esc: close the top layer, else clear the filter; never quits. */
	| {readonly type: 'escape'}
	| {readonly type: 'quit'}
	/** Ctrl-C: cancel a prompt or a wait; twice within 2 s quits. Never reaches a target. */
	| {readonly type: 'interrupt'}
	/** Printable text for the top layer's input (palette, filter, typed confirmation). */
	| {readonly type: 'type'; readonly text: string}
	| {readonly type: 'erase'}
	/** Enter in the top layer. */
	| {readonly type: 'accept'}
	| {readonly type: 'button'; readonly to: 'cancel' | 'go'}
	/** In the dialog of a recovery: all at once, or step by step. */
	| {readonly type: 'toggle-stepwise'}
	/** What the recovery that waits is to do. */
	| {readonly type: 'go-on'; readonly choice: Choice}
	| {readonly type: 'sort-next'}
	| {readonly type: 'invert-sort'}
	| {readonly type: 'toggle-tree'}
	| {readonly type: 'toggle-freeze'}
	| {readonly type: 'toggle-follow'}
	| {readonly type: 'toggle-wrap'}
	| {readonly type: 'log-source'; readonly source: 'server' | 'extraction' | 'kernel' | 'next'}
	| {readonly type: 'toggle-dry-run'}
	| {readonly type: 'read-only'; readonly on: boolean}
	| {readonly type: 'acknowledge'; readonly alertId: string | 'all'}
	| {readonly type: 'look'; readonly probes: LookNow}
	/** Try the routes again, and ask again for what was skipped. */
	| {readonly type: 'reconnect'}
	| {readonly type: 'redraw'}
	| {readonly type: 'suspend'}
	| {readonly type: 'mark'}
	| {readonly type: 'request-operation'; readonly operation: OperationId}
	| {readonly type: 'request-signal'; readonly processKey: string; readonly signal: SignalName}
	| {readonly type: 'abort-operation'}
	| {readonly type: 'break-lock'}
	| {readonly type: 'hint'; readonly words: string};
