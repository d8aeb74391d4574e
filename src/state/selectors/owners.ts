import type {Holder} from '../../ops/probes/holders.ts';
import {describeOwner} from '../../ops/probes/owner.ts';

import {processOf} from '../../ops/probes/process-table.ts';
import type {Owner, ProcessFacts} from '../../ops/probes/processes.ts';

/** What has to be stopped instead of the process; null where nobody is known to keep it. */
export const ownerName = (owner: Owner): string | null =>
	owner.kind === 'none' || owner.kind === 'unknown' ? null : describeOwner(owner);

export const processKey = (holder: Holder): string => `${holder.pid}@${holder.startTicks ?? '?'}`;

/** `vllm.service`, `python3 pid 9120`, `pid 812 not visible here`: the words for who holds a card. */
export function holderWords(holder: Holder, table: ProcessFacts | null): string {
	if (holder.startTicks === null) return `pid ${holder.pid} not visible here`;
	const process = processOf(table?.processes ?? [], holder);
	const owner = process ? ownerName(process.owner) : null;
	if (owner !== null) return owner;
	return `${process?.name ?? (holder.driverName || 'process')} pid ${holder.pid}`;
}
