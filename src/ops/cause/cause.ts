import {type Facts, fresh} from '../facts.ts';
import {holdersOf, usedOn} from '../probes/held-memory.ts';
import {identityKey} from '../probes/probe.ts';
import {processOf} from '../probes/process-table.ts';
import type {Process} from '../probes/processes.ts';
import {FROZEN, isFrozen} from '../probes/stuck.ts';
import {redact} from '../redact.ts';
import {ancestorsOf} from './ancestors.ts';
import {causeOfOwner} from './owner-cause.ts';

/**
 * One link of a cause chain, from what is seen to what mends it: held memory <- process <- ancestors <- what keeps it <-
 * what starts it at boot, then the durable fix. `known` false: it cannot be told, and `says` tells why.
 */
export type CauseLink = {
	readonly step: 'held' | 'process' | 'ancestor' | 'owner' | 'boot' | 'fix' | 'note';
	readonly says: string;
	/** Memory that goes with `says`, where it is known. */
	readonly bytes?: number | null;
	readonly level: 'plain' | 'dim' | 'good' | 'warning' | 'critical';
	readonly known: boolean;
};

export const link = (
	step: CauseLink['step'],
	says: string,
	level: CauseLink['level'] = 'plain',
	bytes?: number | null,
): CauseLink => ({step, says, level, known: true, ...(bytes !== undefined && {bytes})});

export const cannotTell = (step: CauseLink['step'], says: string): CauseLink => ({
	step,
	says,
	level: 'warning',
	known: false,
});

/** Memory above this with nobody in sight is no rest of the driver's own. */
const HELD_BYTES = 2 ** 30;

/** Why this card's memory is held. Empty when there is no such card now. */
export function causeOfCard(uuid: string, facts: Facts): readonly CauseLink[] {
	const gpu = facts.gpus?.last?.value.cards.find(card => card.uuid === uuid);
	if (!gpu) return [];
	const used = gpu.memoryUsedBytes.known ? gpu.memoryUsedBytes.value : null;
	const held = link('held', `GPU ${gpu.index} ${gpu.busId}`, 'plain', used);
	const holders = fresh(facts.holders);
	if (!holders) return [held, cannotTell('process', 'who holds it is unknown: the last look failed or has not come')];
	const [first, ...rest] = holdersOf(gpu, holders);
	if (!first) {
		if (holders.driverList === 'unresolvable')
			return [
				held,
				cannotTell('process', 'the driver lists pids that are not visible from here: look from the hypervisor'),
			];
		const level = used !== null && used > HELD_BYTES ? 'critical' : 'dim';
		return [held, link('process', 'no process is listed or has its device open', level)];
	}
	const process = processOf(fresh(facts.processes)?.processes ?? [], first);
	const bytes = usedOn(first, uuid);
	const chain = process
		? causeOfProcess(process, facts, bytes)
		: [
				{
					...cannotTell(
						'process',
						`pid ${first.pid} ${first.driverName} is not visible from here: look from the hypervisor`,
					),
					bytes,
				},
			];
	const others =
		rest.length > 0 ? [link('note', `and ${rest.length} more: pid ${rest.map(({pid}) => pid).join(', ')}`)] : [];
	return [held, ...chain, ...others];
}

/** From a process upwards. `bytes`: GPU memory it holds, where that is the question. */
export function causeOfProcess(process: Process, facts: Facts, bytes?: number | null): readonly CauseLink[] {
	const table = fresh(facts.processes)?.processes ?? [];
	const links = [link('process', `pid ${process.pid} ${process.name} (start ${process.startTicks})`, 'plain', bytes)];
	if (process.state === 'D')
		links.push(
			link(
				'process',
				isFrozen(process)
					? FROZEN
					: `waits in the kernel (${process.waitChannel ?? 'unknown place'}): cannot end before its I/O returns`,
				'critical',
			),
		);
	if (process.killPending)
		links.push(link('process', 'a SIGKILL is already pending: another one changes nothing', 'warning'));
	const line = facts['command-lines']?.last?.value.lines.get(identityKey(process));
	if (line) links.push(link('note', redact(line)));
	const ancestors = ancestorsOf(process, table);
	for (const each of ancestors) links.push(link('ancestor', `parent pid ${each.pid} ${each.name}`));
	return [...links, ...causeOfOwner(process, ancestors, facts)];
}

/** Every card that holds memory and every stuck process, with its chain: `relight status --json`. */
export function allCauses(facts: Facts): readonly {readonly of: string; readonly links: readonly CauseLink[]}[] {
	const cards = (facts.gpus?.last?.value.cards ?? [])
		.filter(card => !card.memoryUsedBytes.known || card.memoryUsedBytes.value > HELD_BYTES)
		.map(card => ({of: `gpu ${card.index}`, links: causeOfCard(card.uuid, facts)}));
	const stuck = (fresh(facts.processes)?.processes ?? [])
		.filter(process => process.state === 'D' && process.stuckSince !== null)
		.map(process => ({of: `pid ${process.pid}`, links: causeOfProcess(process, facts)}));
	return [...cards, ...stuck];
}
