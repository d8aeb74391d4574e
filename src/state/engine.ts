import {type Facts, NO_FACTS} from '../ops/facts.ts';
import type {Situation} from '../ops/operations/operation.ts';
import type {ProbeId} from '../ops/probes/probe.ts';
import type {HostStatus} from '../ops/transports/failover.ts';
import type {Host} from '../ops/transports/host.ts';
import {doneWork} from './done-work.ts';
import {hintsOf} from './hints.ts';
import {appendHistory} from './history.ts';
import type {Journal} from './journal.ts';
import {oneAtATime} from './one-at-a-time.ts';
import {type Catalogue, createPoller, type Poller} from './poller.ts';
import {createPublisher} from './publisher.ts';
import {createRecorder, type NewEntry} from './recorder.ts';
import {createRunner, type Runner} from './runner.ts';
import type {ConsoleStore} from './store.ts';
import {summaryOf} from './summary.ts';

export type EngineOptions = {
	readonly store: ConsoleStore;
	readonly probes: Catalogue;
	readonly journal: Journal;
	openHost(onStatus: (status: HostStatus) => void): Host;
	readonly clock: () => number;
	/** false while the terminal takes no more: what is not drawn need not be published. */
	mayPublish?(): boolean;
	/** Processes whose rows are on screen. */
	visiblePids?(): readonly number[];
};

/** What makes the console live: looks into facts, facts into the store, plans into acts and the journal. */
export type Engine = Runner & {
	readonly host: Host;
	readonly poller: Poller;
	situation(): Situation;
	look(probes: readonly ProbeId[]): Promise<void>;
	/** Tries the routes again and asks again for what was skipped; then looks. */
	reconnect(): Promise<void>;
	note(entry: NewEntry): void;
	acknowledge(alertId: string | 'all'): void;
	start(): void;
	stop(): Promise<void>;
};

export function createEngine(options: EngineOptions): Engine {
	const {store, journal, clock, mayPublish = () => true, visiblePids = () => []} = options;
	const target = () => store.getState().target;
	const recorder = createRecorder(store, journal, clock);
	let facts: Facts = NO_FACTS;
	let {history} = store.getState();
	let work = 0;

	const host = options.openHost(status => {
		const before = store.getState().route;
		store.setState({route: status});
		if (status.state === before.state && status.label === before.label) return;
		recorder.note({
			kind: 'route',
			level: status.state === 'up' ? 'ok' : 'warning',
			words: `route ${status.state}: ${status.label}${whyNot(status)}`,
			command: null,
		});
	});

	const poller = createPoller({
		target,
		probes: options.probes,
		ask: (lane, script, limits) => host.ask(lane, script, limits),
		askOuter: (_lane, script, limits) => host.askOuter(script, limits),
		wants: id => id !== 'guest' || host.status.passedOver.length > 0 || host.status.state === 'down',
		hints: () => hintsOf({...store.getState(), facts}, visiblePids(), clock()),
		facts: () => facts,
		onFacts(next, id) {
			facts = next;
			if (id === 'gpus' && next.gpus?.last && !next.gpus.failing)
				history = appendHistory(history, next.gpus.last.value, next.gpus.last.at);
			if (runner.isRunning()) publisher.soon();
		},
		onWork(change) {
			work += change;
		},
		clock,
	});

	const situation = (): Situation => ({
		target: target(),
		facts,
		nowMs: clock(),
		own: store.getState().session.own,
		done: doneWork(store.getState().journal),
	});
	const summarize = () => summaryOf({...store.getState(), facts});

	const publisher = createPublisher({
		store,
		recorder,
		journal,
		clock,
		current: () => ({facts, history, work}),
		summarize,
		mayPublish,
	});

	const runner = createRunner({
		store,
		recorder,
		host,
		clock,
		situation,
		summarize,
		look: probes => poller.look(probes),
		changed: publisher.soon,
	});

	async function look(probes: readonly ProbeId[]): Promise<void> {
		await poller.look(probes);
		publisher.now();
	}

	return {
		...runner,
		host,
		poller,
		situation,
		look,
		/** Each try would ask the operator anew. */
		reconnect: oneAtATime(async () => {
			recorder.note({kind: 'route', level: 'info', words: 'the routes are tried again', command: null});
			await host.reconnect();
			await look(Object.keys(options.probes) as ProbeId[]);
		}),
		note: recorder.note,
		acknowledge: publisher.acknowledge,
		start() {
			poller.start();
			publisher.now();
		},
		async stop() {
			publisher.stop();
			poller.stop();
			host.close();
			await journal.close();
		},
	};
}

/** What came before the route that is taken. */
function whyNot({passedOver}: HostStatus): string {
	const why = passedOver.map(({label, reason}) => `${label}: ${reason}`).join('; ');
	return why && ` (${why})`;
}
