import {isMainThread, parentPort, Worker, workerData} from 'node:worker_threads';
import {preferNativeCrc} from '../tensor/crc.ts';
import {type CheckedFile, type CheckOptions, checkFile} from './check-file.ts';
import {SizeRules} from './size-rules.ts';
import {atLeast} from './verdict.ts';

/** Tells our workers from others that load the same bundled file. */
const MARK = 'relight verify';
/** Files a worker has at hand, so that it never waits for the next one. */
const AHEAD = 2;
/** Small looks are sent in bundles: a message costs more than one of them. */
const BUNDLE = 64;
/** Without threads: how long others in this one may wait, one file more or less. */
const REST_EVERY_MS = 10;

type Order = {readonly paths: readonly string[]};

/**
 * Looks at files in `workers` threads (0: in this one), calling `each` as results come, in no order. Rejects when a worker
 * dies. `stop` ends it early, between two files.
 */
export async function checkFiles(
	paths: readonly string[],
	options: CheckOptions,
	workers: number,
	each: (found: CheckedFile) => void,
	stop?: AbortSignal,
): Promise<void> {
	// From source files there is no program that a thread could run.
	if (workers === 0 || import.meta.url.endsWith('.ts')) return checkHere(paths, options, each, stop);
	const bundle = atLeast(options.level, 'crc') ? 1 : BUNDLE;
	let next = 0;
	const order = (): Order => {
		const from = next;
		next = stop?.aborted ? paths.length : Math.min(paths.length, next + bundle);
		return {paths: stop?.aborted ? [] : paths.slice(from, next)};
	};
	const count = Math.min(workers, Math.ceil(paths.length / bundle));
	await Promise.all(Array.from({length: count}, () => drive(options, order, each)));
}

async function checkHere(
	paths: readonly string[],
	options: CheckOptions,
	each: (found: CheckedFile) => void,
	stop?: AbortSignal,
): Promise<void> {
	await preferNativeCrc();
	const rules = new SizeRules();
	let restedAt = performance.now();
	for (const path of paths) {
		if (stop?.aborted) return;
		each(checkFile(path, options, rules));
		if (performance.now() - restedAt < REST_EVERY_MS) continue;
		await new Promise(resolve => setImmediate(resolve));
		restedAt = performance.now();
	}
}

function drive(options: CheckOptions, order: () => Order, each: (found: CheckedFile) => void): Promise<void> {
	const worker = new Worker(new URL(import.meta.url), {workerData: {mark: MARK, options}});
	return new Promise<void>((resolve, reject) => {
		let open = 0;
		const send = (): void => {
			const next = order();
			if (next.paths.length === 0) return;
			open++;
			worker.postMessage(next);
		};
		worker.on('message', (found: readonly CheckedFile[]) => {
			open--;
			for (const one of found) each(one);
			send();
			if (open === 0) resolve();
		});
		worker.on('error', reject);
		worker.on('exit', code => reject(new Error(`a worker ended with ${code}`)));
		for (let at = 0; at < AHEAD; at++) send();
		if (open === 0) resolve();
	}).finally(() => worker.terminate());
}

async function serve(port: NonNullable<typeof parentPort>, options: CheckOptions): Promise<void> {
	await preferNativeCrc();
	const rules = new SizeRules();
	port.on('message', ({paths}: Order) => port.postMessage(paths.map(path => checkFile(path, options, rules))));
}

if (!isMainThread && parentPort && workerData?.mark === MARK) void serve(parentPort, workerData.options);
