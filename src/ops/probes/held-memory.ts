import type {Gpu, GpuFacts} from './gpus.ts';
import type {Holder, HolderFacts} from './holders.ts';

const GIB = 1024 ** 3;

/** Below this a card counts as empty: drivers keep some memory for themselves, so "free" is never "0 bytes used". */
export const idleFloorBytes = (totalBytes: number): number => Math.max(GIB, totalBytes * 0.02);

/**
 * Whether a launch may use the card: nobody holds it, it needs no reset, and its memory is known to be below the idle floor.
 * Unknown memory is not free memory; where memory is shared with the system only the holders count.
 */
export function isFree(gpu: Gpu, {holders, driverList}: HolderFacts): boolean {
	if (gpu.needsReset || driverList === 'unresolvable' || driverList === 'no answer') return false;
	if (holders.some(holder => holdsCard(holder, gpu))) return false;
	return memoryIsBack(gpu);
}

/** Holders charged to this card by the driver, or with its device node open. Most memory first. */
export function holdersOf(gpu: Gpu, facts: HolderFacts | null): readonly Holder[] {
	const node = `nvidia${gpu.index}`;
	return (facts?.holders ?? [])
		.filter(
			holder =>
				holder.memory.some(({gpuUuid}) => gpuUuid === gpu.uuid) ||
				(holder.memory.length === 0 && holder.devices.includes(node)),
		)
		.toSorted((a, b) => (usedOn(b, gpu.uuid) ?? 0) - (usedOn(a, gpu.uuid) ?? 0));
}

export function usedOn(holder: Holder, gpuUuid: string): number | null {
	const entry = holder.memory.find(memory => memory.gpuUuid === gpuUuid);
	return entry?.usedBytes.known ? entry.usedBytes.value : null;
}

/** Memory known to be below the idle floor; where it is shared with the system the holders alone tell. */
export function memoryIsBack(gpu: Gpu): boolean {
	if (gpu.sharedMemory) return true;
	if (!gpu.memoryTotalBytes.known || !gpu.memoryUsedBytes.known) return false;
	return gpu.memoryUsedBytes.value < idleFloorBytes(gpu.memoryTotalBytes.value);
}

/** Node numbers are minor numbers, which mostly equal the index; the driver's own list goes by id. */
const holdsCard = (holder: Holder, gpu: Gpu): boolean =>
	holder.memory.some(entry => entry.gpuUuid === gpu.uuid) || holder.devices.includes(`nvidia${gpu.index}`);

export type HeldUnseen = {
	readonly gpuUuid: string;
	readonly usedBytes: number;
	/** Pids that the driver names and that are not in this pid namespace or gone: never to be signalled from here. */
	readonly pidsElsewhere: readonly number[];
};

/** Cards whose memory is in use while no process that can be seen from here holds them: look from the guest's host. */
export function heldWithoutProcess({cards}: GpuFacts, {holders}: HolderFacts): readonly HeldUnseen[] {
	return cards.flatMap(gpu => {
		if (gpu.sharedMemory || !gpu.memoryTotalBytes.known || !gpu.memoryUsedBytes.known) return [];
		if (gpu.memoryUsedBytes.value < idleFloorBytes(gpu.memoryTotalBytes.value)) return [];
		const here = holders.filter(holder => holdsCard(holder, gpu));
		if (here.some(holder => holder.startTicks !== null)) return [];
		return [{gpuUuid: gpu.uuid, usedBytes: gpu.memoryUsedBytes.value, pidsElsewhere: here.map(holder => holder.pid)}];
	});
}
