import {type ChildProcess, spawn} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createInterface} from 'node:readline';
import {setTimeout as sleep} from 'node:timers/promises';
import {seeded} from '../../../../src/ops/drill/random.ts';
import {type DatasetRecord, makeRecords} from '../../../../src/ops/drill/records.ts';
import {checkSample} from '../../../../src/ops/drill/score-reader.ts';
import {doneIndices} from '../../../../src/ops/extract/inventory.ts';
import {readJournal} from '../../../../src/ops/extract/journal.ts';
import type {ExtractionConfig} from '../../../../src/ops/target.ts';
import {extractionIn} from './bench.ts';

/** On a slow disk, so that most kills fall into the middle of storing something. */
export const EXTRACTOR = `
import {extract} from './src/ops/extract/extract.ts';
import {systemIo} from './src/ops/extract/extract-io.ts';
import {systemFiles} from './src/ops/extract/file-port.ts';
const word = new Int32Array(new SharedArrayBuffer(4));
const slow = call => (...given) => {
	Atomics.wait(word, 0, 0, 2);
	return call(...given);
};
const files = Object.fromEntries(Object.entries(systemFiles).map(([name, call]) => [name, slow(call)]));
const limits = {serverLimitMs: 30_000, dumpLimitMs: 2_000, backOffMs: [20, 50]};
const io = systemIo({tool: 'kill', canary: false, breakStaleLock: true, files, ...limits});
process.exit(await extract(JSON.parse(process.argv[2]), io));
`;

export const SERVER = `
import {appendFileSync} from 'node:fs';
import {modelServer} from './test/ops/extract/support/model-server.ts';
const [dumps, port, log] = process.argv.slice(2);
const asked = rid => appendFileSync(log, rid + '\\n');
const server = await modelServer(dumps, {port: Number(port), prefillMs: 6, asked});
console.log(server.port);
`;

export type Tally = {
	kills: number;
	/** Trees that were extracted to the end, through all kills. */
	trees: number;
	stored: number;
	/** Requests beyond one a sample: what was in flight at a kill. */
	repeated: number;
	readonly corrupt: string[];
	readonly lost: string[];
	readonly duplicated: string[];
	/** Kills at which more samples were asked for and not stored than may be in flight. */
	readonly adrift: string[];
	readonly failed: string[];
};

const RECORDS = 60;
/** One is asked for while three are being stored. */
const IN_FLIGHT = 4;

/** Kills extractor, server or both at random instants, again and again, and looks at the tree after each kill. */
export class KillLoop {
	readonly tally: Tally = {
		kills: 0,
		trees: 0,
		stored: 0,
		repeated: 0,
		corrupt: [],
		lost: [],
		duplicated: [],
		adrift: [],
		failed: [],
	};
	private readonly random;
	private directory = '';
	private records: readonly DatasetRecord[] = [];
	private server: ChildProcess | null = null;
	private extractor: ChildProcess | null = null;
	private port = 0;
	private whole = new Set<number>();
	private wholeAtStart = new Set<number>();
	private requestsAtStart = 0;

	constructor(
		private readonly programs: {readonly extractor: string; readonly server: string},
		private readonly root: string,
		seed: number,
	) {
		this.random = seeded(seed);
		this.freshTree();
	}

	async kill(): Promise<void> {
		if (!this.server) await this.startServer();
		if (!this.extractor) this.startExtractor();
		const running = this.extractor;
		await Promise.race([sleep(this.random.whole(40, 650)), exited(running)]);
		if (running?.exitCode !== null) return this.finished();
		const victim = this.random.whole(0, 4);
		if (victim !== 1) this.extractor = await killed(this.extractor);
		if (victim === 1 || victim === 2) this.server = await killed(this.server);
		this.tally.kills++;
		this.look();
	}

	/** Lets the last tree come to its end. */
	async end(): Promise<void> {
		if (!this.server) await this.startServer();
		if (!this.extractor) this.startExtractor();
		await exited(this.extractor);
		await this.finished();
		await this.close();
	}

	async close(): Promise<void> {
		this.extractor = await killed(this.extractor);
		this.server = await killed(this.server);
		rmSync(this.directory, {recursive: true, force: true});
	}

	private async finished(): Promise<void> {
		const code = this.extractor?.exitCode;
		this.extractor = null;
		this.look();
		if (code !== 0 || this.whole.size !== RECORDS) {
			this.tally.failed.push(
				`exit ${code} with ${this.whole.size} of ${RECORDS}: ${this.log('extractor.log').slice(-400)}`,
			);
		}
		this.tally.trees++;
		this.tally.stored += this.whole.size;
		const asked = this.requests().filter(rid => rid.startsWith('relight-') && !rid.startsWith('relight-check-'));
		this.tally.repeated += asked.length - RECORDS;
		this.server = await killed(this.server);
		rmSync(this.directory, {recursive: true, force: true});
		this.freshTree();
	}

	private freshTree(): void {
		this.directory = mkdtempSync(`${this.root}/tree-`);
		mkdirSync(`${this.directory}/dumps`);
		this.records = makeRecords(RECORDS, this.random.whole(1, 1_000_000));
		writeFileSync(this.extraction.dataset, JSON.stringify(this.records));
		this.port = 0;
		this.whole = new Set();
	}

	private get extraction(): ExtractionConfig {
		return {...extractionIn(this.directory, RECORDS), groupSize: 20};
	}

	private async startServer(): Promise<void> {
		const argv = [`${this.directory}/dumps`, String(this.port), `${this.directory}/requests.log`];
		const server = spawn(process.execPath, [this.programs.server, ...argv], {stdio: ['ignore', 'pipe', 'inherit']});
		this.server = server;
		const line = await new Promise<string>(resolve => createInterface({input: server.stdout}).once('line', resolve));
		this.port = Number(line);
	}

	private startExtractor(): void {
		this.wholeAtStart = new Set(this.whole);
		this.requestsAtStart = this.requests().length;
		const config = {
			extraction: this.extraction,
			server: {port: this.port, model: '/models/kimi'},
			dump: {dir: `${this.directory}/dumps`, limitBytes: 8e6},
		};
		const extractor = spawn(process.execPath, [this.programs.extractor, JSON.stringify(config)], {
			stdio: ['ignore', 'pipe', 'pipe'],
		});
		for (const stream of [extractor.stdout, extractor.stderr])
			stream.on('data', piece => writeFileSync(`${this.directory}/extractor.log`, piece, {flag: 'a'}));
		this.extractor = extractor;
	}

	/** Promised by the journal or counted by its size and end record: it has to be right under a look at every byte. */
	private look(): void {
		const {extraction, tally} = this;
		const promised = readJournal(`${this.directory}/extraction-journal.ndjson`).marks.keys();
		const counted = doneIndices(
			extraction,
			this.records.map(({input_ids: ids}) => ids.length),
		);
		const before = this.whole;
		this.whole = new Set(counted);
		for (const index of new Set([...promised, ...counted])) {
			const record = this.records[index];
			const reason = record ? checkSample(extraction, index, record) : 'no such record';
			if (reason === null) continue;
			tally.corrupt.push(`${index} after kill ${tally.kills}: ${reason}`);
			this.whole.delete(index);
		}
		for (const index of before) if (!this.whole.has(index)) tally.lost.push(`${index} after kill ${tally.kills}`);
		const open = new Set<number>();
		for (const rid of this.requests().slice(this.requestsAtStart)) {
			const index = Number(/^relight-(\d+)-/.exec(rid)?.[1] ?? -1);
			if (this.wholeAtStart.has(index)) tally.duplicated.push(`${rid} after kill ${tally.kills}`);
			if (index >= 0 && !this.whole.has(index)) open.add(index);
		}
		if (open.size > IN_FLIGHT) tally.adrift.push(`${[...open].join(' ')} at kill ${tally.kills}`);
	}

	private requests(): string[] {
		return this.log('requests.log').split('\n').filter(Boolean);
	}

	private log(name: string): string {
		const path = `${this.directory}/${name}`;
		return existsSync(path) ? readFileSync(path, 'utf8') : '';
	}
}

const exited = (child: ChildProcess | null): Promise<void> =>
	new Promise(resolve => {
		if (!child || child.exitCode !== null || child.signalCode !== null) resolve();
		else child.once('close', () => resolve());
	});

async function killed(child: ChildProcess | null): Promise<null> {
	child?.kill('SIGKILL');
	await exited(child);
	return null;
}
