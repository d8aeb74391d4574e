import {fresh} from '../facts.ts';
import type {ProbeId} from '../probes/probe.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import {type Operation, type OperationId, refuse, type Situation, type Verdict} from './operation.ts';

/** An operation that ended well, as the journal has it. `on`: identities of what it acted on. */
export type DoneWork = {
	readonly operation: OperationId;
	readonly title: string;
	readonly on: readonly string[];
	/** The command that takes it back, as it was shown when it was confirmed. */
	readonly inverse: string | null;
	readonly at: number;
};

type Undoing = {
	readonly says: string;
	readonly looks: readonly ProbeId[];
	readonly limitMs: number;
	until(work: DoneWork, situation: Situation): Verdict;
};

/** What can be taken back, and what then shows that it was. */
const UNDOING: Partial<Record<OperationId, Undoing>> = {
	'stop-service': {
		says: 'until the unit runs or waits to start, and comes back at boot as before',
		looks: ['services'],
		limitMs: 60_000,
		until: serviceBack,
	},
	'clear-dumps': {
		says: 'until the requests are back in the dump directory',
		looks: ['extraction'],
		limitMs: 30_000,
		until: ({on}, {facts}) => {
			const dumps = fresh(facts.extraction)?.dumps;
			if (!dumps) return {state: 'pending', words: 'waiting for a good look at the dump directory'};
			const back = on.filter(path => dumps.some(dump => path.endsWith(`/${dump.name}`)));
			return back.length === on.length
				? {state: 'met', words: `${back.length} request(s) are back`}
				: {state: 'pending', words: `${back.length} of ${on.length} are back`};
		},
	},
};

/** Takes back the newest operation that can be: by the very command that was shown with it. */
export const undo: Operation<DoneWork> = {
	id: 'undo',
	title: 'take back the last operation',
	tier: 2,

	defaultInput({done = []}) {
		const newest = done.toReversed().find(({operation}) => operation in UNDOING || operation === 'undo');
		if (!newest) return refuse('nothing in the journal that can be taken back');
		return newest.operation === 'undo' ? refuse(`already taken back: ${newest.title}`) : newest;
	},

	plan(work, {target}) {
		const undoing = UNDOING[work.operation];
		if (!undoing || work.inverse === null) return refuse(`${work.operation} has no way back`);
		return {
			operation: 'undo',
			title: `take back: ${work.title}`,
			tier: 2,
			confirmWord: target.name,
			targets: work.on.map(identity => ({
				kind: identity.startsWith('/') ? 'path' : 'unit',
				identity,
				says: `${identity}  ${work.operation} of ${when(work.at)}`,
			})),
			excluded: [],
			steps: [
				{kind: 'run', id: 'back', says: 'run the way back', script: work.inverse, limitMs: 60_000},
				{
					kind: 'wait',
					id: 'seen',
					says: undoing.says,
					looks: undoing.looks,
					limitMs: undoing.limitMs,
					until: situation => undoing.until(work, situation),
				},
			],
			warnings: work.operation === 'stop-service' ? ['the service takes the cards again as soon as it starts'] : [],
			inverse: null,
		};
	},
};

const when = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

function serviceBack({on, inverse}: DoneWork, {facts}: Situation): Verdict {
	const unit = fresh(facts.services)?.units.find(each => on.includes(each.unit));
	if (!unit) return {state: 'pending', words: 'waiting for a good look at the services'};
	const state = runState(unit);
	const boot = bootVerdict(unit).comesBack;
	const words = `${unit.unit} is ${state}, comes back at boot: ${boot}`;
	const runs = state === 'running' || state === 'starting' || state === 'will start again';
	const wanted = /systemctl (enable|unmask)|50-blocked\.conf/.test(inverse ?? '');
	return runs && (!wanted || boot === 'yes') ? {state: 'met', words} : {state: 'pending', words};
}
