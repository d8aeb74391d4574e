import {allCauses} from '../ops/cause/cause.ts';
import {fresh} from '../ops/facts.ts';
import {holdersOf} from '../ops/probes/held-memory.ts';
import {mountOf} from '../ops/probes/mount-of.ts';
import {bootVerdict, runState} from '../ops/probes/service-verdicts.ts';
import {holderWords} from './selectors/owners.ts';
import type {ConsoleState} from './state.ts';

/** The host in the few numbers that a report compares, as it was when they were taken. null: not known then. */
export type Summary = {
	readonly cards:
		| readonly {readonly index: number; readonly usedBytes: number | null; readonly holders: readonly string[]}[]
		| null;
	readonly units: readonly {readonly unit: string; readonly state: string; readonly comesBack: string}[] | null;
	readonly server: {readonly process: string; readonly phase: string; readonly pid: number | null} | null;
	readonly samples: {
		readonly expected: number | null;
		readonly present: number;
		readonly whole: number;
		readonly holes: number;
		readonly suspects: number;
		readonly quarantined: number;
		readonly bytes: number;
	} | null;
	readonly run: {
		readonly state: string;
		readonly extracted: number;
		readonly skipped: number | null;
		readonly errors: number;
		readonly samplesPerSecond: number | null;
		readonly tokensPerSecond: number | null;
		readonly etaMs: {readonly low: number; readonly high: number} | null;
		readonly message: string | null;
	} | null;
	readonly output: {readonly path: string; readonly mount: string; readonly freeBytes: number | null} | null;
	readonly alerts: readonly string[];
	/** Chains in words, cards with one and the same cause together. */
	readonly causes: readonly {readonly of: string; readonly links: readonly string[]}[];
};

export function summaryOf(state: Pick<ConsoleState, 'facts' | 'target' | 'alerts'>): Summary {
	const {facts, alerts} = state;
	const gpus = fresh(facts.gpus);
	const holders = fresh(facts.holders);
	const table = fresh(facts.processes);
	const services = fresh(facts.services);
	const server = fresh(facts.server);
	const inventory = fresh(facts.extraction)?.inventory ?? null;
	const run = fresh(facts.extraction)?.run ?? null;
	return {
		cards: gpus
			? gpus.cards.map(card => ({
					index: card.index,
					usedBytes: card.memoryUsedBytes.known ? card.memoryUsedBytes.value : null,
					holders: [...new Set(holdersOf(card, holders).map(holder => holderWords(holder, table)))],
				}))
			: null,
		units: services
			? services.units
					.filter(unit => unit.unwanted)
					.map(unit => ({unit: unit.unit, state: runState(unit), comesBack: bootVerdict(unit).comesBack}))
			: null,
		server: server && {process: server.process, phase: server.phase, pid: server.record?.pid ?? null},
		samples: inventory && {
			expected: inventory.expected,
			present: inventory.present,
			whole: inventory.complete,
			holes: inventory.holes.reduce((sum, [from, to]) => sum + to - from + 1, 0),
			suspects: inventory.suspects.length,
			quarantined: inventory.quarantined,
			bytes: inventory.bytes,
		},
		run: run && {
			state: run.state,
			extracted: run.extracted,
			skipped: run.skipped,
			errors: run.errors,
			samplesPerSecond: run.samplesPerSecond,
			tokensPerSecond: run.tokensPerSecond,
			etaMs: run.etaMs,
			message: run.message,
		},
		output: outputOf(state),
		alerts: alerts.map(({level, words}) => `${level}: ${words}`),
		causes: causesOf(state),
	};
}

function outputOf({facts, target}: Pick<ConsoleState, 'facts' | 'target'>): Summary['output'] {
	const path = target.extraction?.output;
	const mounts = fresh(facts.mounts);
	const mount = path && mounts ? mountOf(path, mounts.mounts) : null;
	if (!path || !mount) return null;
	return {
		path,
		mount: mount.path,
		freeBytes: mount.size.kind === 'answered' ? mount.size.availableBytes : null,
	};
}

function causesOf({facts}: Pick<ConsoleState, 'facts'>): Summary['causes'] {
	const same = new Map<string, {of: string[]; links: readonly string[]}>();
	for (const {of, links} of allCauses(facts)) {
		const told = links.filter(({step}) => ['owner', 'boot', 'fix'].includes(step)).map(({says}) => says);
		const key = told.join('\n');
		const known = same.get(key);
		if (known) known.of.push(of);
		else same.set(key, {of: [of], links: told});
	}
	return [...same.values()].map(({of, links}) => ({of: of.join(', '), links}));
}
