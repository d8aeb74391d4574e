import {appendFileSync} from 'node:fs';
import {dirname} from 'node:path';
import type {Progress, RunState} from './progress.ts';

const SKIPS_A_LINE = 500;

/** Turns of a run, one JSON object a line, beside the output; samples themselves are in the journal. */
const eventsPath = (output: string): string => `${dirname(output)}/extraction-events.ndjson`;

/** What the run tells: lines for people, turns for programs, and the state in the progress file. */
export class Report {
	/** Stays in the progress file while nothing more urgent does. */
	private standing: string | null = null;
	private waiting: string | null = null;

	constructor(
		private readonly output: string,
		readonly progress: Progress,
		private readonly print: (line: string) => void,
	) {}

	line(text: string): void {
		this.print(text);
	}

	event(name: string, facts: Readonly<Record<string, unknown>> = {}): void {
		try {
			appendFileSync(eventsPath(this.output), `${JSON.stringify({at: Date.now(), event: name, ...facts})}\n`);
		} catch {
			// A full disk must not end the run.
		}
	}

	verifying(message: string): void {
		this.progress.enter('verifying', message);
	}

	keep(message: string): void {
		this.standing = message;
		this.line(`${message.charAt(0).toUpperCase()}${message.slice(1)}`);
	}

	extracting(): void {
		const {state, message} = this.progress;
		const words = this.waiting ?? this.standing;
		if (state !== 'extracting' || message !== words) this.progress.enter('extracting', words);
	}

	skipping(done: readonly number[]): void {
		this.progress.skipped = done.length;
		for (let at = SKIPS_A_LINE - 1; at < done.length; at += SKIPS_A_LINE)
			this.line(`  Skipping ${done[at]} (already exists)`);
	}

	server(waiting: boolean): void {
		this.event(waiting ? 'server-away' : 'server-back');
		if (!waiting) return;
		this.progress.enter('waiting for server');
		this.line('Waiting for the server');
	}

	/** The number in the words changes while it waits; one line says that it does. */
	room(why: string | null): void {
		if (why !== null && this.waiting === null) {
			this.line(`Waiting for room: ${why}`);
			this.event('no-room', {reason: why});
		}
		if (why === null && this.waiting !== null) {
			this.line('There is room again');
			this.event('room');
		}
		this.waiting = why === null ? null : `waiting for room: ${why}`;
		this.extracting();
	}

	quarantined(index: number | null, place: string, reason: string): void {
		this.event('quarantined', {index, place, reason});
		if (index !== null) this.line(`  [${index}] not whole (${reason}), moved to ${place}`);
	}

	stored(index: number, tokens: number, bytes: number, tookMs: number, doneInAll: number): void {
		const {meter, errors} = this.progress;
		const now = Date.now();
		meter.add(tokens, bytes, now);
		this.progress.lastIndex = index;
		this.progress.remainingTokens -= tokens;
		if (meter.extracted > 5 && meter.extracted % 10 !== 0) return;
		const rates = meter.rates(now) ?? {samples: 0, tokens: 0, bytes: 0};
		const eta = Math.round((meter.eta(this.progress.remainingTokens, now)?.high ?? 0) / 60_000);
		this.line(
			`  [${index}] ${meter.extracted} extracted (${doneInAll} total), ${rates.samples.toFixed(2)} samples/s, ${rates.tokens.toFixed(0)} tok/s, req_time=${(tookMs / 1_000).toFixed(1)}s, ETA: ${eta} min, errors: ${errors}, ~${(meter.bytes / 1e9).toFixed(1)} GB`,
		);
	}

	failed(index: number, times: number, reason: string): void {
		this.progress.errors++;
		this.event('failed', {index, times, reason});
		this.line(`  [${index}] failed: ${reason}`);
	}

	ended(state: RunState, message: string | null, code: number): void {
		this.progress.enter(state, message);
		this.event('ended', {state, message, code, extracted: this.progress.meter.extracted, errors: this.progress.errors});
	}
}
