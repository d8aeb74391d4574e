import {lockWords} from '../ops/act-lock.ts';
import {operationEntry} from '../ops/operations/catalogue.ts';
import {isRefusal, type OperationId, type Situation} from '../ops/operations/operation.ts';
import type {ProbeId} from '../ops/probes/probe.ts';
import {RECOVER} from '../ops/runbook/recover.ts';
import {planRecovery} from '../ops/runbook/run-recovery.ts';
import type {Action} from './actions.ts';
import type {Asking} from './asking.ts';
import {difference, whyNotYet} from './confirm.ts';
import type {Engine} from './engine.ts';
import {mayBreak, othersLock} from './others-lock.ts';
import {OFFERED} from './selectors/offers.ts';
import type {ConfirmOverlay, Overlay} from './state.ts';
import {SIGNALS} from './state.ts';
import type {ConsoleStore} from './store.ts';
import {onTop, pop, push, reduceView} from './view.ts';

export type Dispatch = (action: Action) => void;

export type DispatchOptions = {
	readonly store: ConsoleStore;
	readonly engine: Engine;
	/** Who brings the routes' questions; none where nobody asks. */
	readonly asking?: Asking;
	readonly clock: () => number;
	/** What only the terminal can do. */
	readonly screen: {redraw(): void; suspend(): void};
};

const INTERRUPT_TWICE_MS = 2_000;

/** The one place where an action has effects. */
export function createDispatch({store, engine, asking, clock, screen}: DispatchOptions): Dispatch {
	let interruptedAt = 0;

	const hint = (words: string) => setView({type: 'hint', words});

	function setView(action: Action) {
		store.setState(state => ({view: reduceView(state, action, clock())}));
	}

	function leave(code: number) {
		store.setState({leaving: code});
	}

	/** Quitting never stops an operation's far side; it only loses the one who watches it. */
	function quit() {
		if (store.getState().operation.phase !== 'running') return leave(0);
		store.setState(state => ({view: push(state.view, {type: 'quit', openedAt: clock()})}));
	}

	function ask(operation: OperationId, argument: string | null) {
		const {session, operation: now} = store.getState();
		if (session.readOnly) return hint('read-only: press W to leave it first');
		if (now.phase === 'running') return hint(`${now.plan.title} is still running`);
		const held = othersLock(store.getState());
		if (held) return hint(`read-only: ${lockWords(held)}${mayBreak(held, session) ? ' (o, then B breaks it)' : ''}`);
		// Names are made from this clock, so that planning again for the same dialog gives the same ones.
		const openedAt = clock();
		const plan = operationEntry(operation)?.plan({...engine.situation(), nowMs: openedAt}, argument) ?? {
			refused: `${operation} is not known`,
		};
		if (isRefusal(plan)) return hint(`${operation}: ${plan.refused}`);
		const dialog: ConfirmOverlay = {
			type: 'confirm',
			plan,
			typed: '',
			button: 'cancel',
			openedAt,
			scroll: 0,
			complaint: null,
			...(argument !== null && {argument}),
		};
		store.setState(state => ({
			view: push(
				{
					...state.view,
					overlays: state.view.overlays.filter(each => each.type !== 'operations' && each.type !== 'signals'),
				},
				dialog,
			),
		}));
	}

	/** Planned again from what is known now: what runs is what was shown, or nothing. */
	async function confirm(dialog: ConfirmOverlay) {
		const complain = (complaint: string) =>
			store.setState(state => ({view: onTop(state.view, top => (top.type === 'confirm' ? {...top, complaint} : top))}));
		const why = whyNotYet(dialog, clock());
		if (why) return complain(why);
		const situation: Situation = {...engine.situation(), nowMs: dialog.openedAt};
		const {plan} = dialog;
		const again = operationEntry(plan.operation)?.plan(situation, dialog.argument ?? null);
		if (!again || isRefusal(again)) return complain(`no longer possible: ${again?.refused ?? 'unknown operation'}`);
		const changed = difference(plan, again);
		if (changed) {
			const fresh: ConfirmOverlay = {
				...dialog,
				plan: again,
				typed: '',
				button: 'cancel',
				complaint: `${changed}; look again`,
			};
			return store.setState(state => ({view: onTop(state.view, () => fresh)}));
		}
		store.setState(state => ({view: {...pop(state.view), focus: 'operations'}}));
		if (store.getState().session.dryRun) {
			for (const step of again.steps)
				if (step.kind !== 'wait')
					engine.note({kind: 'step', level: 'info', words: `dry run, not done: ${step.says}`, command: step.script});
			return hint(
				`dry run: nothing was done (${again.steps.filter(step => step.kind !== 'wait').length} commands in the command log)`,
			);
		}
		const recovery = again.operation === 'recover' ? planRecovery(RECOVER, situation) : null;
		if (!recovery || 'refused' in recovery) await engine.run(again);
		else await engine.run(recovery, undefined, dialog.stepwise ? 'stepwise' : 'whole');
	}

	function accept(top: Overlay) {
		switch (top.type) {
			case 'filter':
				return store.setState(state => ({view: pop(state.view)}));
			case 'alerts': {
				const alert = store.getState().alerts[top.index];
				return alert && engine.acknowledge(alert.id);
			}
			case 'operations': {
				const operation = OFFERED[top.index];
				return operation && ask(operation, null);
			}
			case 'signals': {
				const signal = SIGNALS[top.index - 1];
				return signal ? ask('signal', `${top.processKey}:${signal}`) : setView({type: 'back'});
			}
			case 'confirm':
				return void confirm(top);
			case 'ask':
				return asking?.accept();
			case 'unlock':
				return readOnly(false);
			case 'quit':
				return leave(0);
			default:
				return setView({type: 'back'});
		}
	}

	function readOnly(on: boolean) {
		engine.note({kind: 'session', level: 'info', words: on ? 'read-only again' : 'left read-only', command: null});
		store.setState(state => ({
			session: {...state.session, readOnly: on},
			view: state.view.overlays.at(-1)?.type === 'unlock' ? pop(state.view) : state.view,
		}));
	}

	/** Ctrl-C ends prompts and waits; it never reaches a target. Twice within 2 s leaves. */
	function interrupt() {
		const now = clock();
		if (now - interruptedAt < INTERRUPT_TWICE_MS) return leave(130);
		interruptedAt = now;
		const {view, operation} = store.getState();
		if (view.overlays.length > 0) return setView({type: 'escape'});
		if (operation.phase === 'running') {
			engine.abort();
			return hint('no longer waiting: what was started on the host goes on. Ctrl-C again leaves');
		}
		hint('Ctrl-C again leaves; q too');
	}

	return action => {
		store.setState(state => ({session: {...state.session, lastKeyAt: clock()}}));
		const {view, session} = store.getState();
		const top = view.overlays.at(-1);
		switch (action.type) {
			case 'back':
				return top || view.zoomed ? setView(top ? action : {type: 'zoom'}) : quit();
			case 'quit':
				return quit();
			case 'interrupt':
				return interrupt();
			case 'accept':
				return top && accept(top);
			case 'type':
				return top?.type === 'ask' ? asking?.type(action.text) : setView(action);
			case 'erase':
				return top?.type === 'ask' ? asking?.erase() : setView(action);
			case 'button':
				// `y` in a dialog of tier 1 says both: the button and the word.
				return setView(action);
			case 'request-operation':
				return ask(action.operation, null);
			case 'request-signal':
				return ask('signal', `${action.processKey}:${action.signal}`);
			case 'break-lock':
				return void engine.breakLock().then(hint, error => hint(`not done: ${error.message}`));
			case 'go-on':
				if (session.readOnly && action.choice !== 'stop') return hint('read-only: Tab, then W leaves it');
				return engine.goOn(action.choice);
			case 'abort-operation':
				engine.abort();
				return hint('it stops before its next step; what was started goes on');
			case 'toggle-dry-run':
				engine.note({
					kind: 'session',
					level: 'info',
					words: session.dryRun ? 'dry run off' : 'dry run on',
					command: null,
				});
				return store.setState({session: {...session, dryRun: !session.dryRun}});
			case 'read-only':
				return readOnly(action.on);
			case 'acknowledge':
				return engine.acknowledge(action.alertId);
			case 'look':
				void engine.look(action.probes === 'all' ? ALL_PROBES : action.probes);
				return hint('looking again');
			case 'reconnect':
				void engine.reconnect();
				return hint('trying the routes again; what was skipped is asked again');
			case 'redraw':
				return screen.redraw();
			case 'suspend':
				return screen.suspend();
			case 'mark':
				engine.note({kind: 'mark', level: 'info', words: 'mark', command: null});
				return hint('mark set in the timeline');
			case 'log-source':
				setView(action);
				void engine.look(['log']);
				return;
			default:
				return setView(action);
		}
	};
}

const ALL_PROBES: readonly ProbeId[] = [
	'gpus',
	'holders',
	'processes',
	'mounts',
	'services',
	'kernel-log',
	'server',
	'extraction',
	'log',
	'files',
];
