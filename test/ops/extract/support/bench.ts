import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {HIDDEN_SIZE, sampleFile} from '../../../../src/ops/drill/build-data.ts';
import {type DatasetRecord, makeRecords} from '../../../../src/ops/drill/records.ts';
import {checkSample} from '../../../../src/ops/drill/score-reader.ts';
import {extract} from '../../../../src/ops/extract/extract.ts';
import {type ExtractIo, systemIo} from '../../../../src/ops/extract/extract-io.ts';
import {samplePath} from '../../../../src/ops/extract/inventory.ts';
import type {ExtractionConfig} from '../../../../src/ops/target.ts';
import {planSafetensors} from '../../../../src/ops/tensor/safetensors.ts';
import {NORM_WEIGHT, type StagedOptions} from './hook-dumps.ts';
import {type ModelServer, type ModelServerOptions, modelServer} from './model-server.ts';

type Line = Readonly<Record<string, unknown>>;

/** A dataset, an empty output, a dump directory and a model server that follows orders. */
export class Bench {
	readonly directory = mkdtempSync(join(tmpdir(), 'relight-bench-'));
	readonly dumps = join(this.directory, 'dumps');
	readonly records: readonly DatasetRecord[];
	readonly stop = new AbortController();
	readonly lines: string[] = [];
	dumpLimitBytes: number | null = null;
	model = '/models/kimi';
	server!: ModelServer;
	extraction: ExtractionConfig;

	constructor(records = 12) {
		this.records = makeRecords(records, 1);
		mkdirSync(this.dumps);
		this.extraction = extractionIn(this.directory, records);
		writeFileSync(this.extraction.dataset, JSON.stringify(this.records));
	}

	async serve(options: ModelServerOptions = {}): Promise<void> {
		this.server = await modelServer(this.dumps, options);
	}

	run(given: Partial<ExtractIo> = {}): Promise<number> {
		return extract(
			{
				extraction: this.extraction,
				server: {port: this.server.port, model: this.model},
				dump: {dir: this.dumps, limitBytes: this.dumpLimitBytes},
			},
			systemIo({
				canary: false,
				tool: 'test',
				print: line => this.lines.push(line),
				stop: this.stop.signal,
				serverLimitMs: 5_000,
				dumpLimitMs: 300,
				pollMs: 20,
				backOffMs: [10, 20],
				...given,
			}),
		);
	}

	path(index: number): string {
		return samplePath(this.extraction, index);
	}

	/** A right file, as an earlier run would have left it. */
	store(index: number, ageMs = 0): void {
		const record = this.records[index];
		if (!record) throw new Error('no such record');
		mkdirSync(dirname(this.path(index)), {recursive: true});
		writeFileSync(this.path(index), Buffer.concat(sampleFile(index, record)));
		const at = (Date.now() - ageMs) / 1_000;
		utimesSync(this.path(index), at, at);
	}

	/** Per record: what is wrong with its file under an independent look at every byte, or null. */
	wrong(): (string | null)[] {
		return this.records.map((record, index) => checkSample(this.extraction, index, record));
	}

	/** Indices that were asked for, in order; comparisons with stored samples apart. */
	asked(purpose: 'relight' | 'relight-check' = 'relight'): number[] {
		return this.server.rids.flatMap(rid => {
			const [, index] = new RegExp(`^${purpose}-(\\d+)-`).exec(rid) ?? [];
			return index === undefined ? [] : [Number(index)];
		});
	}

	progress(): Line {
		return JSON.parse(readFileSync(this.extraction.progress, 'utf8'));
	}

	file(name: 'run.json' | 'extraction-journal.ndjson' | 'extraction-events.ndjson'): string {
		return join(this.directory, name);
	}

	ndjson(name: 'extraction-journal.ndjson' | 'extraction-events.ndjson'): Line[] {
		if (!existsSync(this.file(name))) return [];
		return readFileSync(this.file(name), 'utf8')
			.trim()
			.split('\n')
			.map(line => JSON.parse(line));
	}

	events(): unknown[] {
		return this.ndjson('extraction-events.ndjson').map(({event}) => event);
	}

	/** A server whose hook makes raw dumps. */
	serveHook(options: ModelServerOptions = {}): Promise<void> {
		return this.serve({named: true, info: {forward_hooks: '[{"hook_factory":"relight_hs:hook"}]'}, ...options});
	}

	/** A server whose hook stages files below the output. */
	serveStaging(
		options: StagedOptions | ((rid: string) => StagedOptions),
		more: ModelServerOptions = {},
	): Promise<void> {
		const staging = `${this.extraction.output}/.staging`;
		const hooks = [{hook_factory: 'relight_hs:hook', config: {slot: 'write', staging}}];
		const staged = {staging, options: typeof options === 'function' ? options : () => options};
		return this.serve({staged, info: {forward_hooks: JSON.stringify(hooks)}, ...more});
	}

	/** A model directory with nothing in it but the weight of the last norm. */
	giveWeights(): void {
		this.model = join(this.directory, 'model');
		mkdirSync(this.model);
		const map = {
			'language_model.model.norm.weight': 'model-2.safetensors',
			'lm_head.norm.weight': 'model-2.safetensors',
		};
		writeFileSync(`${this.model}/model.safetensors.index.json`, JSON.stringify({weight_map: map}));
		const [name = '', other = ''] = Object.keys(map);
		const shape = [HIDDEN_SIZE];
		const {header} = planSafetensors([name, other].map(each => ({name: each, dtype: 'F32' as const, shape})));
		const weight = Buffer.from(NORM_WEIGHT.buffer);
		writeFileSync(`${this.model}/model-2.safetensors`, Buffer.concat([header, weight, Buffer.alloc(weight.length)]));
	}

	manifest(): Record<string, unknown> {
		return JSON.parse(readFileSync(this.file('run.json'), 'utf8')).identity;
	}

	async end(): Promise<void> {
		await this.server?.close();
		rmSync(this.directory, {recursive: true, force: true});
	}
}

export const allNull = (values: readonly unknown[]): boolean => values.every(value => value === null);

export function extractionIn(directory: string, records: number): ExtractionConfig {
	return {
		dataset: join(directory, 'merged.json'),
		records,
		tokens: null,
		output: join(directory, 'out'),
		layout: 'legacy',
		groupSize: 5,
		hiddenSize: HIDDEN_SIZE,
		maxTokens: 128,
		overlength: 'truncate',
		concurrency: 1,
		progress: join(directory, 'progress.json'),
		script: null,
		program: [],
		config: null,
		log: join(directory, 'log'),
		confirmMs: 0,
	};
}
