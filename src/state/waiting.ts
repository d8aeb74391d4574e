import type {Process} from '../ops/probes/processes.ts';

const known = new WeakMap<readonly Process[], readonly Process[]>();

/**
 * The processes that cannot be interrupted or stand still in one place. Every look and every second asks, and thousands of
 * rows stay the same for several of them.
 */
export function waiting(processes: readonly Process[]): readonly Process[] {
	const before = known.get(processes);
	if (before) return before;
	const found = processes.filter(process => process.state === 'D' || process.stuckSince !== null);
	known.set(processes, found);
	return found;
}
