import {type CanaryLength, canaryIds, canaryTokens} from '../server/canary-tokens.ts';
import {SampleFailed} from './attempts.ts';
import type {Sample} from './dataset.ts';

/** What is wrong in one length alone has a cause of its own. */
const CAUSES: Readonly<Record<CanaryLength, string>> = {
	short: 'in short prefills fused all-reduces leave partial sums (--enforce-disable-flashinfer-allreduce-fusion)',
	long: 'long prefills are cut into chunks (--chunked-prefill-size -1)',
};

/**
 * Two fixed lists, a short and a long one, before anything that is to be kept: whoever launched the server, and however long
 * ago. Rejects in words when one does not come back whole; false: stopped meanwhile.
 */
export async function askCanaries(maxTokens: number, ask: (sample: Sample) => Promise<unknown>): Promise<boolean> {
	const counts = canaryTokens(maxTokens);
	for (const which of ['short', 'long'] as const) {
		const inputIds = canaryIds(which, counts[which]);
		const sample = {index: 0, inputIds, lossMask: inputIds.map(() => 1)};
		try {
			if ((await ask(sample)) === null) return false;
		} catch (error) {
			if (!(error instanceof SampleFailed)) throw error;
			const other = which === 'long' ? `; the one of ${counts.short} did: ${CAUSES.long}?` : `: ${CAUSES.short}?`;
			throw new Error(`the canary of ${counts[which]} tokens did not come back whole (${error.message})${other}`);
		}
	}
	return true;
}
