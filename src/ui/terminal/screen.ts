import {closeSync, constants, openSync, writeSync} from 'node:fs';
import {Writable} from 'node:stream';

/** What of a terminal's output stream is needed here; process.stdout is one. */
export type Tty = {
	readonly columns?: number | undefined;
	readonly rows?: number | undefined;
	on(event: 'resize', listener: () => void): unknown;
	off(event: 'resize', listener: () => void): unknown;
};

/** First and longest pause before a full terminal is tried again. */
const RETRY_MS = 8;
const RETRY_MOST_MS = 50;
const RESIZE_SETTLES_MS = 60;

/**
 * Ink's way to the terminal. A terminal that is not read (a stalled link, Ctrl-S) makes a blocking write stop the whole
 * process, and with it every probe and keepalive; so this writes to a non-blocking description of its own and waits by
 * timer. No thread is ever stuck in a write, so the process can always end.
 */
export class Screen extends Writable {
	readonly isTTY = true;
	columns: number;
	rows: number;
	#fd: number;
	#own: boolean;
	#retry: NodeJS.Timeout | null = null;
	#resizing: NodeJS.Timeout | null = null;
	readonly #tty: Tty;

	constructor(tty: Tty, fd = 1) {
		super({decodeStrings: true, highWaterMark: 1 << 20});
		this.#tty = tty;
		const opened = ownDescription(fd);
		this.#fd = opened ?? fd;
		this.#own = opened !== null;
		this.columns = tty.columns ?? 80;
		this.rows = tty.rows ?? 24;
		tty.on('resize', this.#resized);
	}

	/** Bytes are waiting for a slow terminal: drawing more now only makes what is seen older. */
	busy(): boolean {
		return this.writableLength > 0;
	}

	override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
		this.#send(chunk, RETRY_MS, done);
	}

	#send(chunk: Buffer, pauseMs: number, done: (error?: Error | null) => void): void {
		let sent = 0;
		try {
			while (sent < chunk.length) sent += writeSync(this.#fd, chunk, sent);
			done();
		} catch (error) {
			if (!isFull(error)) {
				done(error instanceof Error ? error : new Error(String(error)));
				return;
			}
			const next = sent > 0 ? RETRY_MS : Math.min(pauseMs * 2, RETRY_MOST_MS);
			this.#retry = setTimeout(() => this.#send(chunk.subarray(sent), next, done), pauseMs);
		}
	}

	/** Written at once, trying for `boundMs` at most. `full`: the terminal did not take it all; `gone`: there is none. */
	writeNow(text: string, boundMs: number): 'written' | 'full' | 'gone' {
		const bytes = Buffer.from(text);
		const until = performance.now() + boundMs;
		let sent = 0;
		for (;;) {
			try {
				while (sent < bytes.length) sent += writeSync(this.#fd, bytes, sent);
				return 'written';
			} catch (error) {
				if (!isFull(error)) return 'gone';
				if (performance.now() >= until) return 'full';
				Atomics.wait(PAUSE, 0, 0, 5);
			}
		}
	}

	/** One event when the size has settled, so that dragging a window draws once; columns and rows change with it. */
	readonly #resized = (): void => {
		if (this.#resizing) clearTimeout(this.#resizing);
		this.#resizing = setTimeout(() => {
			this.#resizing = null;
			this.columns = this.#tty.columns ?? this.columns;
			this.rows = this.#tty.rows ?? this.rows;
			this.emit('resize');
		}, RESIZE_SETTLES_MS);
	};

	release(): void {
		this.#tty.off('resize', this.#resized);
		if (this.#retry) clearTimeout(this.#retry);
		if (this.#resizing) clearTimeout(this.#resizing);
		if (this.#own) closeSync(this.#fd);
		this.#own = false;
		this.#fd = 1;
	}
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

const isFull = (error: unknown): boolean =>
	error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EINTR');

/** Ours alone, so that O_NONBLOCK does not leak into the shell; null where it cannot be opened (no /proc, foreign devpts). */
function ownDescription(fd: number): number | null {
	try {
		return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
	} catch {
		return null;
	}
}
