import {attempt, SampleFailed} from './attempts.ts';
import {askCanaries} from './canary.ts';
import {Client} from './client.ts';
import {checkContinuity, continuityWords} from './continuity.ts';
import type {Sample} from './dataset.ts';
import {type SourcePlace, sourceOf} from './dump-source.ts';
import {type DumpSource, removeDump, removeDumpSoon} from './dumps.ts';
import {type ExtractConfig, type ExtractIo, Stopped} from './extract-io.ts';
import type {FinalNorm} from './final-norm.ts';
import type {Journal} from './journal.ts';
import {Keeper} from './keeper.ts';
import {layoutOf} from './layouts.ts';
import type {Ledger} from './ledger.ts';
import {type Identity, learn, type Manifest, Refusal, serverIdentity} from './manifest.ts';
import type {Tree} from './open-tree.ts';
import type {Report} from './report.ts';
import {Room} from './room.ts';
import {giveBack} from './rows-memory.ts';
import {askForStates, type Found, heldStates, sampleFile} from './sample.ts';
import {missingWords, sampleBytes} from './sample-file.ts';
import {ServerGate} from './server-gate.ts';
import {stagingOf} from './staging.ts';
import {presentStates} from './states.ts';
import {Underway} from './underway.ts';

const FAILURES_IN_A_ROW = 5;
const CONTINUITY_SAMPLES = 3;
const KEEP_FREE_AT_LEAST = 64e6;
/** Samples whose states are in memory while the next is asked for: one is synced while another is written. After a kill they are done again. */
const STORED_AT_ONCE = {count: 3, bytes: 320e6};

/** Extracts what the ledger says is to do, with a bounded number of samples in flight. */
export class Run {
	private readonly client: Client;
	private readonly gate: ServerGate;
	private readonly room: Room;
	private readonly ledger: Ledger;
	private readonly norm: FinalNorm;
	private readonly keeper: Keeper;
	private readonly halt = new AbortController();
	private readonly abandon = new AbortController();
	private readonly stop: AbortSignal;
	private readonly place: SourcePlace;
	private readonly storing = new Underway(STORED_AT_ONCE, () => this.halt.abort());
	/** Known once the server was met. */
	private dumps: DumpSource | null = null;
	private manifest: Manifest;
	private inARow = 0;

	constructor(
		private readonly config: ExtractConfig,
		private readonly io: ExtractIo,
		private readonly tree: Tree,
		journal: Journal,
		private readonly report: Report,
	) {
		const {server, dump, extraction} = config;
		this.stop = AbortSignal.any([io.stop, this.halt.signal]);
		this.stop.addEventListener('abort', () => setTimeout(() => this.abandon.abort(), io.graceMs).unref());
		this.ledger = tree.ledger;
		this.norm = tree.norm;
		this.manifest = tree.manifest;
		this.client = new Client(server, io.answerLimitMs);
		this.gate = new ServerGate(this.client, {
			stop: this.stop,
			limitMs: io.serverLimitMs,
			tell: waiting => report.server(waiting),
			met: () => this.meetServer(),
		});
		this.room = new Room(
			{
				output: extraction.output,
				keepFreeBytes:
					extraction.keepFreeBytes ?? Math.max(KEEP_FREE_AT_LEAST, 2 * this.bytes(0, extraction.maxTokens)),
				dumps: dump.dir,
				staging: stagingOf(extraction.output),
				dumpLimitBytes: dump.limitBytes,
			},
			{files: io.files, stop: this.stop, pollMs: io.pollMs, tell: why => report.room(why)},
		);
		this.keeper = new Keeper(this.norm.extraction, io.files, journal, this.room);
		this.place = {dumps: dump.dir, limitMs: io.dumpLimitMs, output: extraction.output};
	}

	close(): void {
		this.client.close();
		this.dumps?.close();
	}

	/** Throws Stopped when it was told to stop, Refusal, or what ended it. */
	async go(): Promise<void> {
		const {fresh, failed} = this.ledger.toDo();
		if (fresh.length + failed.length === 0) return;
		if (!(await this.gate.pass())) throw new Stopped();
		if (!this.source.named && this.config.extraction.concurrency > 1)
			this.report.line('Concurrency stays 1: the dumps of this server carry no names');
		await this.compareWithStored();
		const {fresh: again} = this.ledger.toDo();
		await this.pool(again);
		await this.pool(failed);
	}

	/** Each time it is there again: it may be another one. */
	private async meetServer(): Promise<void> {
		const {dumps, staging, ...identity} = await this.client.identity();
		this.learn(serverIdentity(identity));
		const source = sourceOf({dumps, staging}, this.place, this.norm);
		const {dumps: known} = this;
		if (known && (source.named !== known.named || source.staging !== known.staging))
			throw new Refusal('the server came back with another kind of dumps: start the run again');
		this.dumps ??= source;
	}

	private async compareWithStored(): Promise<void> {
		const {extraction} = this.config;
		const count = extraction.continuity ?? CONTINUITY_SAMPLES;
		const states = async (sample: Sample) => {
			const dump = await this.ask(sample, 'relight-check');
			if (dump) removeDump(dump);
			return dump && 'states' in dump ? dump.states : null;
		};
		if (this.io.canary) {
			this.report.verifying('two fixed requests, a short and a long one');
			await askCanaries(extraction.maxTokens, states);
		}
		this.report.verifying('extracting stored samples again, to compare');
		const again = async (index: number) => states(await this.tree.dataset.one(index));
		const doubt = (index: number, reason: string): void => {
			this.ledger.set(index, {state: 'suspect', reason});
			this.keeper.suspect(index, reason);
		};
		const done = this.ledger.having('done');
		const found = await checkContinuity(this.norm, done, count, again, doubt).catch(error => {
			if (!(error instanceof SampleFailed)) throw error;
			throw new Error(`a stored sample could not be extracted again: ${error.message}`);
		});
		if (this.stop.aborted) throw new Stopped();
		if (found) {
			this.report.keep(continuityWords(found));
			this.report.event('continuity', found);
		}
	}

	/** Any number of hands on one row of samples; the first error stops the others after their sample. */
	private async pool(indices: readonly number[]): Promise<void> {
		if (indices.length === 0) return;
		const samples = this.tree.dataset.samples(indices);
		const hands = this.source.named ? this.config.extraction.concurrency : 1;
		const work = async (): Promise<void> => {
			try {
				while (!this.stop.aborted) {
					const next = await samples.next();
					if (next.done) return;
					await this.one(next.value);
				}
			} catch (error) {
				this.halt.abort();
				throw error;
			}
		};
		const ended = await Promise.allSettled(Array.from({length: hands}, work));
		ended.push(...(await Promise.allSettled([this.storing.ended()])));
		await samples.return(undefined);
		for (const each of ended) if (each.status === 'rejected') throw each.reason;
		if (this.stop.aborted) throw new Stopped();
	}

	private async one(sample: Sample): Promise<void> {
		const {index} = sample;
		const before = this.ledger.get(index);
		if (!(await this.gate.pass())) return;
		if (before.state === 'suspect') {
			if (!(await this.room.enter(0, 0))) return;
			this.report.quarantined(index, this.keeper.setAside(index, before.reason), before.reason);
			this.ledger.set(index, {state: 'quarantined', reason: before.reason});
		}
		const startedAt = Date.now();
		this.ledger.set(index, {state: 'in-flight'});
		try {
			const dump = await this.ask(sample, 'relight');
			if (!dump) this.ledger.set(index, {state: 'absent'});
			else
				await this.storing.add(this.bytes(index, sample.inputIds.length), inPlace =>
					this.store(sample, dump, startedAt, inPlace),
				);
		} catch (error) {
			this.ledger.set(index, {state: 'absent'});
			if (!(error instanceof SampleFailed)) throw error;
			this.failed(index, (before.state === 'failed' ? before.times : 0) + 1, error.message);
		}
	}

	/** Done is what is on the disk, and said so by a journal that is: the dump stays until then. */
	private async store(sample: Sample, dump: Found, startedAt: number, inPlace: () => void): Promise<void> {
		const {index, inputIds} = sample;
		try {
			const stored = await this.keeper.put(sampleFile(this.norm.extraction, sample, dump), inPlace);
			this.ledger.set(index, {state: stored ? 'done' : 'absent'});
			if (!stored) return;
			this.inARow = 0;
			this.report.stored(index, inputIds.length, stored.bytes, Date.now() - startedAt, this.ledger.count('done'));
			await removeDumpSoon(dump);
		} catch (error) {
			this.ledger.set(index, {state: 'absent'});
			throw error;
		} finally {
			if ('states' in dump) for (const [, rows] of presentStates(dump.states)) giveBack(rows);
		}
	}

	private async ask(sample: Sample, purpose: 'relight' | 'relight-check') {
		const {hiddenSize} = this.config.extraction;
		const tokens = sample.inputIds.length;
		const {client} = this;
		return attempt(this.gate, {stop: this.stop, backOffMs: this.io.backOffMs}, async () => {
			const leave = await this.room.enter(
				tokens * hiddenSize * 2 * this.source.states,
				this.bytes(sample.index, tokens),
			);
			if (!leave) throw new Stopped();
			if (purpose === 'relight') {
				this.report.extracting();
				this.report.progress.meter.start(Date.now());
			}
			try {
				const dump = await askForStates(sample, {
					norm: this.norm,
					client,
					dumps: this.source,
					hiddenSize,
					purpose,
					abandon: this.abandon.signal,
				});
				return purpose === 'relight' ? this.fitting(dump) : dump;
			} finally {
				leave();
			}
		});
	}

	/** What of a dump is for this tree. Throws Refusal when that is not known, or not there. */
	private fitting(dump: Found): Found {
		const held = heldStates(dump);
		this.norm.decide(held, this.ledger.count('done') === 0);
		this.learn({layers: dump.layers, norm: this.norm.norm});
		const missing = missingWords(layoutOf(this.norm.extraction), held);
		if (missing === null) return dump;
		removeDump(dump);
		throw new Refusal(`layout ${this.norm.extraction.layout}: ${missing}`);
	}

	private get source(): DumpSource {
		if (!this.dumps) throw new Error('no server was met yet');
		return this.dumps;
	}

	private learn(found: Identity): void {
		this.manifest = learn(this.io.files, this.config.extraction.output, this.manifest, found);
	}

	private failed(index: number, times: number, reason: string): void {
		this.ledger.set(index, {state: 'failed', times, reason});
		this.keeper.failed(index, times, reason);
		this.report.failed(index, times, reason);
		if (++this.inARow >= FAILURES_IN_A_ROW)
			throw new Error(`${this.inARow} samples in a row failed, the last because: ${reason}`);
	}

	private bytes(index: number, tokens: number): number {
		return sampleBytes(this.norm.extraction, index, tokens);
	}
}
