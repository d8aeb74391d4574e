import {fresh} from '../facts.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import type {Process} from '../probes/processes.ts';
import {runState} from '../probes/service-verdicts.ts';
import {FROZEN, heldBack, isFrozen} from '../probes/stuck.ts';
import {claimsOf} from './claims.ts';
import {type Operation, type PlanTarget, refuse, type Situation, type Verdict} from './operation.ts';
import {signalScript} from './signal-script.ts';

export const freeGpus: Operation<Record<string, never>> = {
	id: 'free-gpus',
	title: 'free the GPUs of leftovers',
	tier: 3,
	defaultInput: () => ({}),

	plan(_, situation) {
		const {facts, target} = situation;
		const holders = fresh(facts.holders);
		const table = fresh(facts.processes);
		if (!holders) return refuse('who holds the GPUs is not known: the last look failed or has not come');
		if (!table) return refuse('the process table is not known: the last look failed or has not come');
		if (holders.holders.length === 0) return refuse('nothing holds a GPU');
		const running = new Set(
			fresh(facts.services)
				?.units.filter(unit => runState(unit) !== 'stopped')
				.map(unit => unit.unit),
		);
		const targets: (PlanTarget & {pid: number; startTicks: number})[] = [];
		const excluded: PlanTarget[] = [];
		const frozen: number[] = [];
		const unitsFirst = new Map<string, number>();
		for (const {pid, startTicks, process, spared, says} of claimsOf(situation) ?? []) {
			const entry = {kind: 'process' as const, identity: `${pid}@${startTicks}`, says};
			const unit = process?.owner.kind === 'unit' ? process.owner.unit : null;
			if (spared !== null || startTicks === null) excluded.push({...entry, says: `${says}: ${spared}`});
			else if (process && isFrozen(process)) {
				frozen.push(pid);
				excluded.push({...entry, says: `${says}: ${FROZEN}`});
			} else if (unit && running.has(unit)) {
				unitsFirst.set(unit, (unitsFirst.get(unit) ?? 0) + 1);
				excluded.push({...entry, says: `${says}: stop ${unit} first, a kill alone comes back`});
			} else targets.push({...entry, pid, startTicks});
		}
		if (targets.length === 0) {
			const first = [...unitsFirst].map(
				([unit, count]) => `${count} of ${unit}: stop that first, a kill alone comes back`,
			);
			const thaw = frozen.length > 0 ? [`pid ${frozen.join(', ')} is ${FROZEN}`] : [];
			const rest = excluded.length - frozen.length - [...unitsFirst.values()].reduce((sum, count) => sum + count, 0);
			const spared = rest > 0 ? [`${rest} protected or not to be reached from here`] : [];
			return refuse(`nothing to end (${[...first, ...thaw, ...spared].join('; ')})`);
		}
		const end = (signal: string, id: string, says: string) => ({
			kind: 'run' as const,
			id,
			says,
			script: signalScript(signal, holders.bootId, targets, target.server?.python ?? null),
			limitMs: 15_000,
			signals: targets.map(each => each.identity),
		});
		return {
			operation: 'free-gpus',
			title: `end ${targets.length} process(es) that hold GPU memory`,
			tier: 3,
			confirmWord: target.name,
			targets: targets.map(({kind, identity, says}) => ({kind, identity, says})),
			excluded,
			steps: [
				end('TERM', 'term', 'ask each to end'),
				{
					kind: 'wait',
					id: 'grace',
					says: 'up to 20 s for them to end by themselves',
					looks: ['holders', 'processes'],
					limitMs: 20_000,
					grace: true,
					until: here => ended(targets, here),
				},
				end('KILL', 'kill', 'end those still there (each identity is checked again)'),
				{
					kind: 'wait',
					id: 'freed',
					says: 'until no holder is left and memory is below the idle floor on every card',
					looks: ['holders', 'gpus', 'processes'],
					limitMs: 120_000,
					until: here => freed(targets, here),
				},
			],
			warnings: [],
			inverse: null,
		};
	},
};

type Ends = readonly {pid: number; startTicks: number}[];

function ended(targets: Ends, {facts}: Situation): Verdict {
	const table = fresh(facts.processes);
	if (!table) return {state: 'pending', words: 'waiting for a good look at the processes'};
	const left = table.processes.filter(
		process =>
			!isGone(process) && targets.some(each => each.pid === process.pid && each.startTicks === process.startTicks),
	);
	if (left.length === 0) return {state: 'met', words: 'all ended'};
	const held = heldBack(left);
	if (held) return {state: 'pending', words: held};
	const headless = left.filter(process => process.state === 'Z');
	if (headless.length > 0)
		return {
			state: 'pending',
			words: `pid ${headless.map(each => each.pid).join(', ')}: the first thread ended, others live on and hold the card`,
		};
	return {state: 'pending', words: `${left.length} still there`};
}

/** A zombie holds nothing, unless only its first thread has ended. */
const isGone = ({state, threads}: Pick<Process, 'state' | 'threads'>): boolean => state === 'Z' && threads <= 1;

function freed(targets: Ends, situation: Situation): Verdict {
	const gone = ended(targets, situation);
	if (gone.state !== 'met') return gone;
	const holders = fresh(situation.facts.holders);
	const gpus = fresh(situation.facts.gpus);
	if (!holders || !gpus) return {state: 'pending', words: 'waiting for a good look at the cards'};
	const held = holders.holders.filter(holder =>
		targets.some(each => each.pid === holder.pid && each.startTicks === holder.startTicks),
	);
	if (held.length > 0) return {state: 'pending', words: `${held.length} still listed by the driver`};
	const others = new Set(holders.holders.flatMap(holder => holder.memory.map(each => each.gpuUuid)));
	const full = gpus.cards.filter(card => !others.has(card.uuid) && !memoryIsBack(card));
	if (full.length > 0)
		return {state: 'pending', words: `memory not yet back on card ${full.map(card => card.index).join(', ')}`};
	return {state: 'met', words: `memory is free on ${gpus.cards.length - others.size} of ${gpus.cards.length} cards`};
}
