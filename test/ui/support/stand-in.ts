import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal} from '../../../src/ops/operations/operation.ts';
import type {Action} from '../../../src/state/actions.ts';
import type {ConsoleState} from '../../../src/state/state.ts';
import {type ConsoleStore, createConsoleStore} from '../../../src/state/store.ts';
import {pop, push, reduceView} from '../../../src/state/view.ts';
import type {ConsoleTools} from '../../../src/ui/hooks/use-console.ts';

export type StandIn = ConsoleTools & {readonly store: ConsoleStore; readonly actions: Action[]};

/** A console with nothing behind it: view actions are reduced, the others kept to be looked at. */
export function standIn(
	initial: ConsoleState,
	size: {columns: number; rows: number} = {columns: 100, rows: 30},
): StandIn {
	const store = createConsoleStore(initial);
	const actions: Action[] = [];
	const viewport = {...size, epoch: 0};
	return {
		store,
		actions,
		theme: {color: false, ascii: false},
		viewport: {get: () => viewport, subscribe: () => () => {}},
		dispatch(action) {
			actions.push(action);
			const state = store.getState();
			const now = Date.now();
			if (action.type === 'request-operation') {
				const plan = operationEntry(action.operation)?.plan(state, null);
				if (!plan || isRefusal(plan)) return;
				store.setState({
					view: push(pop(state.view), {
						type: 'confirm',
						plan,
						typed: '',
						button: 'cancel',
						openedAt: state.nowMs,
						scroll: 0,
						complaint: null,
					}),
				});
			} else if (action.type === 'accept') store.setState({view: pop(state.view)});
			else if (action.type === 'toggle-dry-run')
				store.setState({session: {...state.session, dryRun: !state.session.dryRun}});
			else if (action.type === 'quit' || (action.type === 'back' && state.view.overlays.length === 0))
				store.setState({leaving: 0});
			else store.setState({view: reduceView(state, action, now)});
		},
	};
}
