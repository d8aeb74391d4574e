import {fresh} from '../facts.ts';
import {describeOwner} from '../probes/owner.ts';
import {processOf} from '../probes/process-table.ts';
import type {Process} from '../probes/processes.ts';
import {ownLine, protectedReason} from '../probes/protected.ts';
import type {Situation} from './operation.ts';

/** One process that holds a card, and whether it may be ended. */
export type Claim = {
	readonly pid: number;
	readonly startTicks: number | null;
	readonly process: Process | null;
	/** Why it must be left alone, in words; null when it may be ended. */
	readonly spared: string | null;
	readonly says: string;
};

/** Every holder with its verdict; null while holders or processes are not known, which is never "nobody". */
export function claimsOf({facts, own}: Pick<Situation, 'facts' | 'own'>): readonly Claim[] | null {
	const holders = fresh(facts.holders);
	const table = fresh(facts.processes);
	if (!holders || !table) return null;
	const ownPids = ownLine(own, table);
	return holders.holders.map(holder => {
		const process = processOf(table.processes, holder);
		const cards = holder.memory.length > 0 ? `${holder.memory.length} card(s)` : holder.devices.join(' ');
		const owner = process ? `  ${describeOwner(process.owner)}` : '';
		const says = `pid ${holder.pid}  ${process?.name ?? holder.driverName}  ${cards}${owner}`;
		const spared = process
			? protectedReason(process, process.owner, ownPids)
			: 'not in this pid namespace or already gone: look from the hypervisor';
		return {pid: holder.pid, startTicks: holder.startTicks, process, spared, says};
	});
}

/** Pids that may be ended, for "does anybody hold the cards who should not". Empty also while unknown. */
export const endablePids = (situation: Pick<Situation, 'facts' | 'own'>): ReadonlySet<number> =>
	new Set(
		claimsOf(situation)
			?.filter(claim => claim.spared === null)
			.map(claim => claim.pid),
	);
