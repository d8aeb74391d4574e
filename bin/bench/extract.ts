import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {extract as runExtract} from '../../src/ops/extract/extract.ts';
import {systemIo} from '../../src/ops/extract/extract-io.ts';
import {samplePath} from '../../src/ops/extract/inventory.ts';
import {planSample, samplePieces} from '../../src/ops/extract/sample-file.ts';
import type {ExtractionConfig} from '../../src/ops/target.ts';
import {preferNativeCrc} from '../../src/ops/tensor/crc.ts';
import {atLeast, atMost, bestOf, has, ownCpuMs, say} from './cost.ts';
import {instantServer, prepareDumps, type Size} from './instant-server.ts';
import {raw} from './raw.ts';
import {finiteNoise} from './samples.ts';

const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const LARGE: Size = {tokens: 3_050, hiddenSize: 4_096};
const SMALL: Size = {tokens: 256, hiddenSize: 64};
const DONE = 18_421;
const TURNS = 4;
const DURABLE = '  sustained and durable: rate of dd conv=fdatasync';
const TINY: Size = {tokens: 8, hiddenSize: 8};

/** How fast samples get onto the disk for good when the server takes no time; and how soon a resumed run does something new. */
export async function extract(argv: readonly string[]): Promise<void> {
	const [samples = '24'] = argv;
	const crc = await preferNativeCrc();
	say(`checksums by ${crc === 'native' ? '@node-rs/crc32' : 'zlib; not compared: @node-rs/crc32, not installed'}`);
	await sustained('samples of 100 MB', LARGE, Number(samples), dd => atLeast(DURABLE, dd, 'x', 1.5));
	// Not what the target is for: a request costs more than a file of this size does.
	await sustained('small samples', SMALL, 400, dd => say(`${DURABLE} ${dd.toFixed(2)}x`));
	await raw(MEMORY, configOf('', 1, LARGE), LARGE);
	await resumed();
}

type Place = {readonly folder: string; readonly dumps: string; readonly extraction: ExtractionConfig};

async function inPlace(records: number, size: Size, work: (place: Place) => Promise<void>): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-bench-extract-'));
	const dumps = mkdtempSync(join(MEMORY, 'relight-bench-dumps-'));
	try {
		const extraction = configOf(folder, records, size);
		const record = (index: number) => ({
			input_ids: Array.from({length: size.tokens}, (_, at) => (index * 7 + at) % 1_000),
			loss_mask: Array(size.tokens).fill(1),
		});
		writeFileSync(extraction.dataset, JSON.stringify(Array.from({length: records}, (_, index) => record(index))));
		await work({folder, dumps, extraction});
	} finally {
		for (const each of [folder, dumps]) rmSync(each, {recursive: true, force: true});
	}
}

const configOf = (folder: string, records: number, {tokens, hiddenSize}: Size): ExtractionConfig => ({
	...{dataset: join(folder, 'merged.json'), records, tokens: null, output: join(folder, 'out'), layout: 'legacy'},
	...{groupSize: 2_000, hiddenSize, maxTokens: tokens, overlength: 'truncate', concurrency: 2},
	...{progress: join(folder, 'progress.json'), script: null, program: [], config: null, log: '', confirmMs: 0},
});

type Run = {readonly wallMs: number; readonly cpuMs: number; readonly firstMs: number | null};

/** `wallMs`: from the first request for a new sample to the end. `firstMs`: from the start to the first that is stored. */
async function run(
	{dumps, extraction}: Place,
	size: Size,
	given: {adopt?: boolean; stop?: AbortController} = {},
): Promise<Run> {
	const server = await instantServer(dumps, size);
	let firstMs: number | null = null;
	const startedAt = performance.now();
	const print = (line: string): void => {
		if (/^ {2}\[\d+\] \d+ extracted/.test(line)) firstMs ??= performance.now() - startedAt;
		if (given.stop && / to extract$/.test(line)) given.stop.abort();
		if (/^(Failed|Refused)/.test(line)) say(line);
	};
	const cpu = ownCpuMs();
	const code = await runExtract(
		{extraction, server: {port: server.port, model: '/models/bench'}, dump: {dir: dumps, limitBytes: null}},
		systemIo({
			...{tool: 'bench', print, adopt: given.adopt ?? false},
			...(given.stop && {stop: given.stop.signal}),
		}),
	);
	const endedAt = performance.now();
	const cpuMs = ownCpuMs() - cpu;
	server.close();
	if (code !== 0) throw new Error(`the extractor ended with ${code}`);
	return {wallMs: endedAt - (server.firstAskedAt() ?? startedAt), cpuMs, firstMs};
}

/** Both in turn, the least of each: what is first written into memory new to a virtual machine costs several times as much. */
async function sustained(what: string, size: Size, samples: number, judge: (timesDd: number) => void): Promise<void> {
	const runs: Run[] = [];
	const dds: number[] = [];
	let bytes = 0;
	for (let turn = 0; turn < TURNS; turn++) {
		await inPlace(samples, size, async place => {
			const {folder, extraction} = place;
			({bytes} = planSample(extraction, 0, size.tokens));
			if (has('dd')) dds.push(ddMs(folder, bytes, Math.min(samples, 24)));
			prepareDumps(place.dumps, samples, size);
			runs.push(await run(place, size));
			const lines = readFileSync(join(folder, 'extraction-journal.ndjson'), 'utf8').split('"stored"').length - 1;
			if (lines !== samples) throw new Error(`${lines} of ${samples} samples were stored`);
		});
	}
	const each = Math.min(...runs.map(({wallMs}) => wallMs)) / samples;
	const cpuMs = Math.min(...runs.map(({cpuMs}) => cpuMs)) / samples;
	const rate = (ms: number): string => `${(bytes / 1e3 / ms).toFixed(0)} MB/s`;
	const sizes = `${samples} of ${(bytes / 1e6).toFixed(2)} MB`;
	say(`${what}: ${sizes}, ${each.toFixed(1)} ms each (${cpuMs.toFixed(1)} CPU), ${rate(each)}, least of ${TURNS}`);
	if (dds.length === 0) return say('dd conv=fdatasync: not compared, no dd here');
	const dd = Math.min(...dds);
	say(`  dd conv=fdatasync of as many bytes: ${dd.toFixed(1)} ms each, ${rate(dd)}, least of ${TURNS}`);
	judge(dd / each);
}

/** Wall time of one file; each under a name of its own, as samples have. */
function ddMs(folder: string, bytes: number, files: number): number {
	const source = join(MEMORY, `relight-bench-dd-${process.pid}`);
	writeFileSync(source, Buffer.alloc(bytes, 'relight'));
	try {
		const loop = `for i in $(seq ${files}); do dd if="$1" of="$2/dd.$i" bs=1M conv=fdatasync status=none; done`;
		const {wallMs} = bestOf(['sh', '-c', loop, 'sh', source, folder], 1);
		return wallMs / files;
	} finally {
		rmSync(source);
		for (let at = 1; at <= files; at++) rmSync(join(folder, `dd.${at}`), {force: true});
	}
}

async function resumed(): Promise<void> {
	await inPlace(DONE + 4, TINY, async place => {
		const {extraction, dumps} = place;
		const states = Object.fromEntries(
			(['aux_0', 'aux_1', 'aux_2', 'final_pre'] as const).map((name, layer) => [
				name,
				finiteNoise(TINY.tokens * TINY.hiddenSize, layer),
			]),
		);
		for (let index = 0; index < DONE; index++) {
			const inputIds = Array.from({length: TINY.tokens}, (_, at) => (index * 7 + at) % 1_000);
			const plan = planSample(extraction, index, TINY.tokens);
			const path = samplePath(extraction, index);
			if (index % extraction.groupSize === 0) mkdirSync(dirname(path), {recursive: true});
			const sample = {index, inputIds, lossMask: Array(TINY.tokens).fill(1)};
			writeFileSync(path, Buffer.concat([...samplePieces(extraction, plan, sample, states)]));
		}
		// Taken over and stopped: what follows is the resume of a run that knows its files.
		prepareDumps(dumps, 1, TINY);
		await run(place, TINY, {adopt: true, stop: new AbortController()});
		prepareDumps(dumps, 8, TINY);
		const {firstMs, cpuMs} = await run(place, TINY);
		if (firstMs === null) throw new Error('nothing new was stored');
		say(
			`resume with ${DONE} done: ${firstMs.toFixed(0)} ms to the first new sample (${cpuMs.toFixed(0)} ms CPU in all)`,
		);
		atMost('  resume: start to first new sample', firstMs / 1_000, 's', 3, '1');
	});
}
