import type {DumpConfig, ExtractionConfig, ServerConfig} from '../target.ts';
import {type FilePort, systemFiles} from './file-port.ts';

export type ExtractConfig = {
	readonly extraction: ExtractionConfig;
	readonly server: Pick<ServerConfig, 'port' | 'model'>;
	readonly dump: DumpConfig;
};

/** What the run takes from outside. */
export type ExtractIo = {
	/** Root of /proc, for the boot id and for who else may hold the lock. */
	readonly proc: string;
	readonly print: (line: string) => void;
	/** Ends the run after the samples in flight. */
	readonly stop: AbortSignal;
	/** Take over a lock whose owner is provably gone. */
	readonly breakStaleLock: boolean;
	/** Look at all of a tree that has no manifest, and take it over. */
	readonly adopt: boolean;
	/** Two fixed requests before the first sample, whose dumps must be whole. */
	readonly canary: boolean;
	/** Version of this program, for the manifest. */
	readonly tool: string;
	readonly files: FilePort;
	readonly serverLimitMs: number;
	readonly answerLimitMs: number;
	/** From the server's answer to the complete dump. */
	readonly dumpLimitMs: number;
	/** Pauses between the attempts at one sample; one attempt more than pauses. */
	readonly backOffMs: readonly number[];
	/** How long a sample in flight is waited for once the run is to stop. */
	readonly graceMs: number;
	/** How often room is looked for while there is none. */
	readonly pollMs: number;
};

/** Ends the run where it is, as asked. */
export class Stopped extends Error {}

/** SIGTERM and SIGINT stop the run cleanly; a second one ends it at once. */
export function systemIo(given: Partial<ExtractIo> & Pick<ExtractIo, 'tool'>): ExtractIo {
	return {
		proc: '/proc',
		print: line => process.stdout.write(`${line}\n`),
		stop: given.stop ?? signalled(),
		breakStaleLock: false,
		adopt: false,
		canary: true,
		files: systemFiles,
		serverLimitMs: 24 * 60 * 60_000,
		answerLimitMs: 300_000,
		dumpLimitMs: 10_000,
		backOffMs: [200, 1_000],
		graceMs: 20_000,
		pollMs: 1_000,
		...given,
	};
}

function signalled(): AbortSignal {
	const stop = new AbortController();
	for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
	return stop.signal;
}
