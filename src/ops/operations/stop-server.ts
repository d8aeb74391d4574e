import {show} from '../command.ts';
import {fresh} from '../facts.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import {identityKey} from '../probes/probe.ts';
import type {Process} from '../probes/processes.ts';
import {lineage} from '../probes/protected.ts';
import type {LaunchRecord} from '../probes/server.ts';
import {heldBack} from '../probes/stuck.ts';
import {type Operation, refuse, type Situation, type Step, type Verdict} from './operation.ts';
import {signalScript} from './signal-script.ts';

/** SGLang drains: it answers what it has, looks every 5 s, and gives its ranks 15 s. */
const DRAIN_MS = 60_000;

/**
 * Drain, then end what is left of it: schedulers can outlive the process that started them, with the cards and the port.
 * Done is no process of it, the port free and the memory back.
 */
export const stopServer: Operation<Record<string, never>> = {
	id: 'stop-server',
	title: 'stop the launched server',
	tier: 2,
	defaultInput: () => ({}),

	plan(_, situation) {
		const {facts, target} = situation;
		const server = fresh(facts.server);
		if (server?.process !== 'alive' || !server.record) return refuse('no server launched from here is known to run');
		if (fresh(facts.extraction)?.run?.alive) return refuse('an extraction is running on it: stop that first');
		const {record} = server;
		const family = familyOf(record, situation);
		if (!family) return refuse('the process table is not known: the last look failed or has not come');
		const keys = family.map(identityKey);
		const python = target.server?.python ?? null;
		return {
			operation: 'stop-server',
			title: `stop the server on port ${record.port} (pid ${record.pid})`,
			tier: 2,
			confirmWord: target.server?.name ?? target.name,
			targets: [
				...(record.unit
					? [{kind: 'unit' as const, identity: record.unit, says: `${record.unit}  port ${record.port}`}]
					: []),
				...family.map(process => ({
					kind: 'process' as const,
					identity: identityKey(process),
					says: `pid ${process.pid}  ${process.name}`,
				})),
			],
			excluded: [],
			steps: [
				drainStep(record, python),
				{
					kind: 'wait',
					id: 'drained',
					says: `up to ${DRAIN_MS / 1_000} s for it to answer what it has and end by itself`,
					looks: ['server', 'processes'],
					limitMs: DRAIN_MS,
					grace: true,
					until: here => gone(family, here),
				},
				{
					kind: 'run',
					id: 'kill',
					says: 'end what is still there of it (each identity is checked again)',
					script: signalScript('KILL', record.bootId, family, python),
					limitMs: 15_000,
					signals: keys,
				},
				{
					kind: 'wait',
					id: 'freed',
					says: 'until no process of it is left, the port is free and the memory is back',
					looks: ['server', 'holders', 'gpus', 'processes'],
					limitMs: 120_000,
					until: here => freed(family, record, here),
				},
			],
			warnings: ['what it leaves in /dev/shm (sgl_shm_*, psm_*, nccl-*) stays: the next launch makes its own'],
			inverse: null,
		};
	},
};

/** Without waiting, so that a lost link changes nothing; a unit is stopped by its manager. */
function drainStep({unit, bootId, pid, startTicks}: LaunchRecord, python: string | null): Step {
	const own = {kind: 'run' as const, id: 'drain', says: 'ask it to answer what it has and end', limitMs: 20_000};
	if (unit) return {...own, script: show(['systemctl', 'stop', '--no-block', '--', unit])};
	return {...own, script: signalScript('TERM', bootId, [{pid, startTicks}], python), signals: [`${pid}@${startTicks}`]};
}

/** The recorded process, what descends from it, its group, and what its unit holds: whatever was adopted by pid 1 meanwhile. */
function familyOf({pid, startTicks, unit}: LaunchRecord, {facts}: Situation): readonly Process[] | null {
	const table = fresh(facts.processes)?.processes;
	if (!table) return null;
	return table.filter(
		process =>
			(process.pid === pid && process.startTicks === startTicks) ||
			(process.owner.kind === 'unit' && process.owner.unit === unit) ||
			(process.groupId === pid && process.startTicks >= startTicks) ||
			lineage(process.pid, table).includes(pid),
	);
}

function gone(family: readonly Process[], {facts}: Situation): Verdict {
	const table = fresh(facts.processes);
	if (!table) return {state: 'pending', words: 'waiting for a good look at the processes'};
	const alive = new Set(table.processes.filter(({state, threads}) => state !== 'Z' || threads > 1).map(identityKey));
	const left = family.filter(process => alive.has(identityKey(process)));
	if (left.length === 0) return {state: 'met', words: 'all of it ended'};
	const held = heldBack(table.processes.filter(({pid}) => left.some(one => one.pid === pid)));
	if (held) return {state: 'pending', words: held};
	return {state: 'pending', words: `${left.length} process(es) of it left`};
}

function freed(family: readonly Process[], record: LaunchRecord, here: Situation): Verdict {
	const ended = gone(family, here);
	if (ended.state !== 'met') return ended;
	const server = fresh(here.facts.server);
	const gpus = fresh(here.facts.gpus);
	const holders = fresh(here.facts.holders);
	if (!server || !gpus || !holders) return {state: 'pending', words: 'waiting for a good look at port and cards'};
	const owner = server.portOwner.known ? server.portOwner.value : null;
	if (owner)
		return {
			state: 'pending',
			words: `port ${record.port} is still held by ${owner.name} (pid ${owner.pid ?? 'unknown'})`,
		};
	const others = new Set(holders.holders.flatMap(holder => holder.memory.map(({gpuUuid}) => gpuUuid)));
	const full = gpus.cards.filter(card => !others.has(card.uuid) && !memoryIsBack(card));
	if (full.length > 0)
		return {state: 'pending', words: `memory not yet back on card ${full.map(card => card.index).join(', ')}`};
	return {state: 'met', words: `gone, port ${record.port} free, memory back`};
}
