import {mkdirSync} from 'node:fs';
import {dirname} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import type {DumpConfig, ExtractionConfig, ServerConfig} from '../target.ts';
import {Client, ServerAway} from './client.ts';
import {Journal, leftTemporaries, quarantine} from './commit.ts';
import {DatasetError, readSamples, type Sample} from './dataset.ts';
import {samplePath, sampleState} from './inventory.ts';
import {takeLock, thisWriter} from './lock.ts';
import {Meter} from './meter.ts';
import {Progress} from './progress.ts';
import {extractSample, SampleFailed} from './sample.ts';

export type ExtractConfig = {
	readonly extraction: ExtractionConfig;
	readonly server: Pick<ServerConfig, 'port'>;
	readonly dump: Pick<DumpConfig, 'dir'>;
};

/** What the run takes from outside. */
export type ExtractIo = {
	/** Root of /proc, for the boot id and for who else may hold the lock. */
	readonly proc: string;
	readonly print: (line: string) => void;
	/** Ends the run after the sample in flight. */
	readonly stop: AbortSignal;
	/** Take over a lock whose owner is provably gone. */
	readonly breakStaleLock: boolean;
	readonly serverLimitMs: number;
	/** From the server's answer to the complete dump. */
	readonly dumpLimitMs: number;
};

const FAILURES_IN_A_ROW = 5;
const SKIPS_A_LINE = 500;

/**
 * Extracts what is not done yet, in dataset order, one request at a time. Exit status: 0 all done or stopped as asked, 1
 * done but for samples that failed, 2 given up, 4 refused because another writer holds the tree.
 */
export async function extract(config: ExtractConfig, io: ExtractIo = systemIo()): Promise<number> {
	const {extraction} = config;
	mkdirSync(extraction.output, {recursive: true});
	const writer = thisWriter(io.proc);
	const lock = takeLock(`${extraction.output}/.relight-writer`, writer, io.proc, io.breakStaleLock);
	if (!lock.taken) {
		io.print(lock.words);
		return 4;
	}
	if (lock.broken) io.print(`Took over the lock of pid ${lock.broken.pid}, which is gone`);
	const progress = new Progress(extraction.progress, writer, new Meter());
	const run = new Run(config, io, progress);
	try {
		return await run.go();
	} catch (error) {
		const words = error instanceof Error ? error.message : String(error);
		progress.enter('failed', words);
		io.print(`Failed: ${words}`);
		return 2;
	} finally {
		progress.end();
		run.close();
		lock.release();
	}
}

/** SIGTERM and SIGINT stop the run cleanly; a second one ends it at once. */
export function systemIo(): ExtractIo {
	const stop = new AbortController();
	for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
	return {
		proc: '/proc',
		print: line => process.stdout.write(`${line}\n`),
		stop: stop.signal,
		breakStaleLock: false,
		serverLimitMs: 60 * 60_000,
		dumpLimitMs: 10_000,
	};
}

class Run {
	private readonly client: Client;
	private readonly journal: Journal;
	/** Indices that are done, and the sum of tokens of those that are not. */
	private readonly done = new Set<number>();
	private wanted = 0;
	private inARow = 0;
	private up = false;

	constructor(
		private readonly config: ExtractConfig,
		private readonly io: ExtractIo,
		private readonly progress: Progress,
	) {
		this.client = new Client(config.server);
		const {progress: path} = config.extraction;
		this.journal = new Journal(`${dirname(path)}/extraction-journal.ndjson`);
	}

	close(): void {
		this.client.close();
		this.journal.close();
	}

	async go(): Promise<number> {
		const {extraction} = this.config;
		this.io.print(`Dataset: ${extraction.dataset}`);
		this.io.print(`Output: ${extraction.output}`);
		for (const path of leftTemporaries(extraction.output))
			quarantine(extraction.output, path, 'left by a writer that died');
		await this.verify();
		this.io.print(`${this.done.size} of ${this.wanted} done, ${this.wanted - this.done.size} to extract`);
		for await (const sample of this.samples()) {
			if (this.io.stop.aborted) return this.end('stopped', 'stopped as asked', 0);
			if (this.done.has(sample.index)) this.skip(sample.index);
			else if ((await this.one(sample)) === 'stopped') return this.end('stopped', 'stopped as asked', 0);
			if (this.inARow >= FAILURES_IN_A_ROW) throw new Error(`${this.inARow} samples in a row failed`);
		}
		const {errors} = this.progress;
		return this.end('finished', errors > 0 ? `${errors} samples failed` : null, errors > 0 ? 1 : 0);
	}

	private end(state: 'finished' | 'stopped', message: string | null, code: number): number {
		this.progress.enter(state, message);
		const {extracted} = this.progress.meter;
		this.io.print(
			`${state === 'finished' ? 'Done' : 'Stopped'}: ${extracted} extracted, ${this.progress.errors} errors`,
		);
		return code;
	}

	/** Samples as they are to be extracted: cut to the limit, or left out when over it. */
	private async *samples(): AsyncGenerator<Sample> {
		const {dataset, maxTokens, overlength} = this.config.extraction;
		for await (const sample of readSamples(dataset)) {
			if (sample.inputIds.length === 0) continue;
			if (sample.inputIds.length <= maxTokens) yield sample;
			else if (overlength === 'truncate') {
				yield {
					index: sample.index,
					inputIds: sample.inputIds.slice(0, maxTokens),
					lossMask: sample.lossMask.slice(0, maxTokens),
				};
			}
		}
	}

	private async verify(): Promise<void> {
		const {extraction} = this.config;
		let records = 0;
		for await (const {index, inputIds} of this.samples()) {
			records = index + 1;
			this.wanted++;
			if (sampleState(extraction, index, inputIds.length).state === 'done') this.done.add(index);
			else this.progress.remainingTokens += inputIds.length;
			if (this.io.stop.aborted) return;
		}
		if (extraction.records !== null && records > extraction.records) {
			throw new DatasetError(`${extraction.dataset}: ${records} records where ${extraction.records} are expected`);
		}
	}

	private skip(index: number): void {
		this.progress.skipped++;
		if (this.progress.skipped % SKIPS_A_LINE === 0) this.io.print(`  Skipping ${index} (already exists)`);
	}

	private async one(sample: Sample): Promise<'stored' | 'failed' | 'stopped'> {
		const {extraction, dump} = this.config;
		const place = {dir: dump.dir, limitMs: this.io.dumpLimitMs};
		const {index, inputIds} = sample;
		const state = sampleState(extraction, index, inputIds.length);
		if (state.state === 'suspect') {
			const place = quarantine(extraction.output, samplePath(extraction, index), state.reason);
			this.journal.add({index, quarantined: place, reason: state.reason, at: Date.now()});
			this.io.print(`  [${index}] not whole (${state.reason}), moved to ${place}`);
		}
		for (;;) {
			if (!this.up && !(await this.serverUp())) return 'stopped';
			if (this.progress.state !== 'extracting') this.progress.enter('extracting');
			const startedAt = Date.now();
			this.progress.meter.start(startedAt);
			try {
				const {bytes, crc, idsHash} = await extractSample(sample, extraction, place, this.client);
				this.journal.add({index, tokens: inputIds.length, bytes, crc32: crc, ids: idsHash, at: Date.now()});
				this.stored(index, inputIds.length, bytes, Date.now() - startedAt);
				return 'stored';
			} catch (error) {
				if (error instanceof ServerAway) this.up = false;
				else if (error instanceof SampleFailed) {
					this.failed(index, error.message);
					return 'failed';
				} else throw error;
			}
		}
	}

	private stored(index: number, tokens: number, bytes: number, tookMs: number): void {
		const {meter} = this.progress;
		const now = Date.now();
		meter.add(tokens, bytes, now);
		this.done.add(index);
		this.inARow = 0;
		this.progress.lastIndex = index;
		this.progress.remainingTokens -= tokens;
		if (meter.extracted > 5 && meter.extracted % 10 !== 0) return;
		const rates = meter.rates(now) ?? {samples: 0, tokens: 0, bytes: 0};
		const eta = Math.round((meter.eta(this.progress.remainingTokens, now)?.high ?? 0) / 60_000);
		this.io.print(
			`  [${index}] ${meter.extracted} extracted (${this.done.size} total), ${rates.samples.toFixed(2)} samples/s, ${rates.tokens.toFixed(0)} tok/s, req_time=${(tookMs / 1_000).toFixed(1)}s, ETA: ${eta} min, errors: ${this.progress.errors}, ~${(meter.bytes / 1e9).toFixed(1)} GB`,
		);
	}

	private failed(index: number, reason: string): void {
		this.progress.errors++;
		this.inARow++;
		this.journal.add({index, failed: reason, at: Date.now()});
		this.io.print(`  [${index}] failed: ${reason}`);
	}

	/** Waits, longer each time, until the server's HTTP side answers. false: stopped meanwhile. Rejects when it takes too long. */
	private async serverUp(): Promise<boolean> {
		const until = Date.now() + this.io.serverLimitMs;
		for (let waitMs = 100; !this.io.stop.aborted; waitMs = Math.min(waitMs * 1.6, 5_000)) {
			if (await this.client.up()) {
				this.up = true;
				return true;
			}
			if (Date.now() > until) throw new Error('the server did not answer in time');
			if (this.progress.state !== 'waiting for server') {
				this.progress.enter('waiting for server');
				this.io.print('Waiting for the server');
			}
			await sleep(waitMs, undefined, {signal: this.io.stop}).catch(() => {});
		}
		return false;
	}
}
