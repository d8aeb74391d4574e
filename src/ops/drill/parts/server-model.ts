import {existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {bareTensor} from '../build-data.ts';
import {PATCH_MARKER} from '../build-host.ts';
import type {PartBox} from './part-box.ts';
import type {Asked, HookSide} from './server-hook.ts';
import type {ServerLog} from './server-log.ts';

const FILES = ['aux_0', 'aux_1', 'aux_2', 'final'];
const REQUEST_MS = 15;
/** As many requests at most in one pass. */
const BATCH = 8;

type Waiting = Asked & {readonly done: () => void; readonly failed: (error: unknown) => void};

/**
 * The model: runs what waits, one request after another while the patch is in its source, else several in a pass; and dumps
 * each, through the patch, the hook, or both.
 */
export class Model {
	/** Counts every run of the model: requests, health probes and warm-up alike, as the patch does. */
	private counter = 0;
	private readonly queue: Waiting[] = [];
	private working = false;
	running = 0;
	private readonly dumpDir: string | null;
	private hook: HookSide | null = null;

	constructor(
		private readonly box: PartBox,
		private readonly log: ServerLog,
	) {
		const asked = process.env.SGLANG_HS_DUMP_DIR;
		const {patched} = box.paths;
		const active = asked !== undefined && existsSync(patched) && readFileSync(patched, 'utf8').includes(PATCH_MARKER);
		this.dumpDir = active ? asked : null;
	}

	use(hook: HookSide | null): void {
		this.hook = hook;
	}

	end(): void {
		this.hook?.end();
	}

	/** Resolves when the request has gone through the model and its dump, if there is to be one, is there. */
	run(ids: readonly number[], rid: string): Promise<void> {
		this.running++;
		const mine = new Promise<void>((done, failed) => this.queue.push({ids, rid, done, failed}));
		void this.work();
		return mine.finally(() => this.running--);
	}

	private async work(): Promise<void> {
		if (this.working) return;
		this.working = true;
		while (this.queue.length > 0) {
			const batch = this.queue.splice(0, this.dumpDir === null ? BATCH : 1);
			try {
				await this.prefill(batch);
				for (const {done} of batch) done();
			} catch (error) {
				for (const {failed} of batch) failed(error);
			}
		}
		this.working = false;
	}

	private async prefill(batch: readonly Waiting[]): Promise<void> {
		const startedAt = performance.now();
		touch(this.box.paths.activity);
		await sleep(REQUEST_MS);
		for (const {ids} of batch) {
			const request = ++this.counter;
			if (this.dumpDir !== null) this.dump(`${this.dumpDir}/req_${request}`, ids);
		}
		await this.hook?.pass(batch.map(({rid, ids}) => ({rid, ids})));
		const tokens = batch.reduce((sum, {ids}) => sum + ids.length, 0);
		const rate = tokens / ((performance.now() - startedAt) / 1_000);
		this.log.line(
			`Prefill batch, #new-seq: ${batch.length}, #new-token: ${tokens}, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: ${this.queue.length}, input throughput (token/s): ${rate.toFixed(2)}`,
			0,
		);
	}

	private dump(directory: string, ids: readonly number[]): void {
		mkdirSync(directory, {recursive: true});
		for (const [layer, name] of FILES.entries()) writeFileSync(`${directory}/${name}.pt`, bareTensor(name, ids, layer));
		writeFileSync(`${directory}/done`, '');
	}
}

function touch(path: string): void {
	const now = new Date();
	try {
		utimesSync(path, now, now);
	} catch {
		writeFileSync(path, '');
	}
}
