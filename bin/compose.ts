import {randomUUID} from 'node:crypto';
import {hostname} from 'node:os';
import {join} from 'node:path';
import {ownIdentity} from '../src/ops/own-identity.ts';
import {PROBES} from '../src/ops/probes/catalogue.ts';
import type {Identity} from '../src/ops/probes/probe.ts';
import type {Target} from '../src/ops/target.ts';
import type {Asker} from '../src/ops/transports/question.ts';
import {hostOf} from '../src/ops/transports/routes.ts';
import type {Operator} from '../src/ops/transports/ssh-settings.ts';
import {type Asking, createAsking} from '../src/state/asking.ts';
import {createEngine, type Engine} from '../src/state/engine.ts';
import {showHolds} from '../src/state/holding.ts';
import {type Journal, journalDays, noJournal, openJournal, readJournal} from '../src/state/journal.ts';
import type {JournalEntry} from '../src/state/state.ts';
import {type ConsoleStore, createConsoleStore, initialState} from '../src/state/store.ts';
import {reduceView} from '../src/state/view.ts';
import {UsageError} from './configuration.ts';

export type Composition = {readonly store: ConsoleStore; readonly engine: Engine; readonly asking: Asking};

export type CompositionOptions = {
	readonly target: Target;
	readonly operator: Operator;
	readonly mode: 'live' | 'drill';
	readonly readOnly: boolean;
	/** Who is asked what only the operator knows: dialogs of the console, a terminal, or nobody. */
	readonly asker: 'dialogs' | Asker | null;
	/** null: nothing may be done, so nothing is written. */
	readonly journalDirectory: string | null;
	/** Where earlier work is read from, when it is not where this writes. */
	readonly earlierJournal?: string;
	mayPublish?(): boolean;
	visiblePids?(): readonly number[];
};

/** Store, host, poller and journal for one target, connected and not yet started. */
export async function compose(options: CompositionOptions): Promise<Composition> {
	const {target, operator, mode, readOnly, journalDirectory} = options;
	const clock = Date.now;
	const store = createConsoleStore(
		initialState(
			target,
			{mode, operator: operator.user, from: hostname(), token: randomUUID(), readOnly, own: whoAmI()},
			clock(),
		),
	);
	const before = options.earlierJournal ?? journalDirectory;
	if (before) store.setState({journal: await earlierWork(join(before, 'journal'), target.name)});
	const journal = journalDirectory ? await journalIn(journalDirectory, target.name, operator.user) : noJournal;
	const asking = createAsking({
		store,
		clock,
		note: entry => engine.note(entry),
		hint: words => store.setState(state => ({view: reduceView(state, {type: 'hint', words}, clock())})),
	});
	const asker = options.asker === 'dialogs' ? asking : options.asker;
	const engine = createEngine({
		store,
		probes: PROBES,
		journal,
		clock,
		openHost: onStatus => hostOf(target, operator, {onStatus, asker}),
		...(options.mayPublish && {mayPublish: options.mayPublish}),
		...(options.visiblePids && {visiblePids: options.visiblePids}),
	});
	showHolds(store, clock);
	return {store, engine, asking};
}

/** An operator's machine need not be one with /proc. */
function whoAmI(): Identity | null {
	try {
		return ownIdentity();
	} catch {
		return null;
	}
}

/** What was done here in earlier sessions: for the timeline, and for what can be taken back. */
async function earlierWork(directory: string, host: string): Promise<readonly JournalEntry[]> {
	const days = (await journalDays(directory, host)).slice(-2);
	const entries = await Promise.all(days.map(day => readJournal(directory, host, day)));
	return entries.flat().filter(entry => entry.plan !== undefined);
}

/** Without a journal nothing may be done, so a place that cannot hold one is wrong use, told before anything starts. */
async function journalIn(directory: string, host: string, user: string): Promise<Journal> {
	try {
		return await openJournal(join(directory, 'journal'), host, user, Date.now);
	} catch (error) {
		throw new UsageError(
			`relight: no journal can be kept in ${directory} (${(error as Error).message}): set XDG_STATE_HOME to a local disk`,
		);
	}
}
