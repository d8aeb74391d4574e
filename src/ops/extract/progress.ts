import {mkdirSync, renameSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import type {Writer} from './lock.ts';
import type {Meter} from './meter.ts';

export type RunState = 'verifying' | 'waiting for server' | 'extracting' | 'finished' | 'stopped' | 'failed';

const EVERY_MS = 500;

/** The run's own account of itself: `relight.progress/1`, one small file, replaced whole twice a second. */
export class Progress {
	state: RunState = 'verifying';
	message: string | null = null;
	skipped = 0;
	errors = 0;
	lastIndex: number | null = null;
	remainingTokens = 0;
	private readonly timer: NodeJS.Timeout;

	constructor(
		private readonly path: string,
		private readonly writer: Writer,
		readonly meter: Meter,
	) {
		mkdirSync(dirname(path), {recursive: true});
		this.write();
		this.timer = setInterval(() => this.write(), EVERY_MS);
		this.timer.unref();
	}

	enter(state: RunState, message: string | null = null): void {
		this.state = state;
		this.message = message;
		this.write();
	}

	end(): void {
		clearInterval(this.timer);
		this.write();
	}

	private write(): void {
		const now = Date.now();
		const rates = this.state === 'extracting' ? this.meter.rates(now) : null;
		const text = JSON.stringify({
			schema: 'relight.progress/1',
			state: this.state,
			pid: this.writer.pid,
			startTicks: this.writer.startTicks,
			bootId: this.writer.bootId,
			extracted: this.meter.extracted,
			skipped: this.skipped,
			errors: this.errors,
			tokens: this.meter.tokens,
			samplesPerSecond: rounded(rates?.samples),
			tokensPerSecond: rounded(rates?.tokens),
			bytesPerSecond: rounded(rates?.bytes),
			etaMs: this.state === 'extracting' ? this.meter.eta(this.remainingTokens, now) : null,
			lastIndex: this.lastIndex,
			updatedAt: now,
			message: this.message,
		});
		try {
			writeFileSync(`${this.path}.tmp`, `${text}\n`);
			renameSync(`${this.path}.tmp`, this.path);
		} catch {
			// A full disk must not end the run; the console sees the age of the file.
		}
	}
}

const rounded = (value: number | undefined): number | null =>
	value === undefined ? null : Math.round(value * 100) / 100;
