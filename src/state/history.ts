import type {GpuFacts} from '../ops/probes/gpus.ts';
import type {History} from './state.ts';

/** Ten minutes at one look in two seconds. */
const LENGTH = 300;

export function appendHistory(history: History, gpus: GpuFacts, at: number): History {
	const push = <T>(list: readonly T[], value: T): readonly T[] => [...list.slice(list.length >= LENGTH ? 1 : 0), value];
	const next = new Map(history.gpus);
	for (const card of gpus.cards) {
		const before = next.get(card.uuid) ?? {busyPercent: [], usedFraction: []};
		const used =
			card.memoryUsedBytes.known && card.memoryTotalBytes.known && card.memoryTotalBytes.value > 0
				? card.memoryUsedBytes.value / card.memoryTotalBytes.value
				: null;
		next.set(card.uuid, {
			busyPercent: push(before.busyPercent, card.busyPercent.known ? card.busyPercent.value : null),
			usedFraction: push(before.usedFraction, used),
		});
	}
	return {at: push(history.at, at), gpus: next};
}
