import type {Situation} from './operations/operation.ts';

/** No driver, no device node, and nobody said that there should be: a machine without cards, not a broken one. */
export function hasNoCards({gpus}: Situation['facts'], {expect, server}: Situation['target']): boolean {
	const failure = gpus?.failing?.failure;
	const absent = failure?.kind === 'complaint' && failure.says.includes('no NVIDIA device node');
	return absent && expect.gpus === null && server === null;
}
