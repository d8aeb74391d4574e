import {setTimeout as sleep} from 'node:timers/promises';
import {Abandoned, Refused, ServerAway} from './client.ts';
import {Stopped} from './extract-io.ts';
import {isBroken} from './file-port.ts';
import {Refusal} from './manifest.ts';
import type {ServerGate} from './server-gate.ts';

/** This sample cannot be had now; the reason is for people. The run goes on without it. */
export class SampleFailed extends Error {}

/**
 * Tries until it succeeds, once more than there are pauses to make; a server that is away is waited for and counts only when it went while
 * the request was out. null: stopped meanwhile. Rejects with SampleFailed, or with what is not the sample's fault.
 */
export async function attempt<T>(
	gate: ServerGate,
	{stop, backOffMs}: {readonly stop: AbortSignal; readonly backOffMs: readonly number[]},
	once: () => Promise<T>,
): Promise<T | null> {
	for (let failures = 0; ; ) {
		if (!(await gate.pass())) return null;
		try {
			return await once();
		} catch (error) {
			if (error instanceof Abandoned || error instanceof Stopped) return null;
			if (!(error instanceof Error) || error instanceof Refusal || isBroken(error)) throw error;
			const away = error instanceof ServerAway;
			if (away) gate.shut(error.hung);
			if (away && !error.blame) {
				await pause(100, stop);
				continue;
			}
			const wait = backOffMs[failures++];
			if (error instanceof Refused) throw new SampleFailed(error.message);
			if (wait === undefined) throw new SampleFailed(away ? `${error.message}, ${failures} times` : error.message);
			await pause(wait, stop);
		}
	}
}

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, {signal}).catch(() => {});
