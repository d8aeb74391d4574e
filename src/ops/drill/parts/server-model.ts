import {existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {bareTensor} from '../build-data.ts';
import {PATCH_MARKER} from '../build-host.ts';
import type {PartBox} from './part-box.ts';
import type {ServerLog} from './server-log.ts';

const FILES = ['aux_0', 'aux_1', 'aux_2', 'final'];
const REQUEST_MS = 15;

/** The model: answers one request after another, and dumps each that it runs while the patch is in its source. */
export class Model {
	/** Counts every run of the model: requests, health probes and warm-up alike, as the patch does. */
	private counter = 0;
	private turn: Promise<unknown> = Promise.resolve();
	running = 0;
	private readonly dumpDir: string | null;

	constructor(
		private readonly box: PartBox,
		private readonly log: ServerLog,
	) {
		const asked = process.env.SGLANG_HS_DUMP_DIR;
		const {patched} = box.paths;
		const active = asked !== undefined && existsSync(patched) && readFileSync(patched, 'utf8').includes(PATCH_MARKER);
		this.dumpDir = active ? asked : null;
	}

	run(ids: readonly number[]): Promise<void> {
		this.running++;
		const mine = this.turn.then(() => this.prefill(ids)).finally(() => this.running--);
		this.turn = mine.catch(() => {});
		return mine;
	}

	private async prefill(ids: readonly number[]): Promise<void> {
		const startedAt = performance.now();
		touch(this.box.paths.activity);
		await sleep(REQUEST_MS);
		const request = ++this.counter;
		if (this.dumpDir !== null) this.dump(`${this.dumpDir}/req_${request}`, ids);
		const rate = ids.length / ((performance.now() - startedAt) / 1_000);
		this.log.line(
			`Prefill batch, #new-seq: 1, #new-token: ${ids.length}, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: ${this.running - 1}, input throughput (token/s): ${rate.toFixed(2)}`,
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
