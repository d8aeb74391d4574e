import {closeSync} from 'node:fs';
import type {SuspendTerminal, TerminalSuspension} from 'ink';
import type {Viewport, ViewportSource} from '../hooks/use-console.ts';
import {restoreTerminal} from './restore.ts';
import {Screen, type Tty} from './screen.ts';

export type Terminal = {
	readonly screen: Screen;
	readonly viewport: ViewportSource;
	/** Nothing should be published while true: the terminal has not taken the last frame. */
	busy(): boolean;
	/** Everything drawn again from nothing. */
	redraw(): void;
	/** Ctrl-Z: the terminal handed back, the process group stopped, all of it taken up again on SIGCONT. */
	suspend(): void;
	/** The one way out: the terminal as it was found, then whoever waits is told the exit code. */
	leave(code: number, error?: unknown): void;
	readonly left: Promise<number>;
	/** Ink's own hand-over, known once the tree stands. */
	attach(hooks: InkHooks): void;
};

export type InkHooks = {readonly suspendTerminal: SuspendTerminal; unmount(): void};

type Stream = NodeJS.EventEmitter & {readonly isTTY?: boolean; readonly fd?: number};

export type TerminalOptions = {
	readonly stdout: Tty & Stream;
	readonly stdin: Stream & {setRawMode?(on: boolean): unknown; unref?(): unknown};
	readonly stderr: Stream & {write(text: string): unknown};
	/** Called once, first thing on the way out; must not wait. */
	onLeave?(code: number): void;
	/** Stops this process group until it is continued; a test says what that means. */
	stop?(): void;
};

const SIGNAL_CODES = {SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131} as const;
const SIGNALS = Object.keys(SIGNAL_CODES) as (keyof typeof SIGNAL_CODES)[];

export function createTerminal({stdout, stdin, stderr, onLeave, stop = stopGroup}: TerminalOptions): Terminal {
	const screen = new Screen(stdout);
	let hooks: InkHooks | null = null;
	let suspension: Promise<TerminalSuspension> | null = null;
	let gone = false;
	let view: Viewport = {columns: screen.columns, rows: screen.rows, epoch: 0};
	const listeners = new Set<() => void>();
	const {promise: left, resolve: tell} = deferred<number>();

	// Raw before the first frame: Ink turns it on only after it, and keys typed meanwhile would be echoed into it.
	if (stdin.isTTY) stdin.setRawMode?.(true);

	const handlers = Object.fromEntries(SIGNALS.map(signal => [signal, () => leave(SIGNAL_CODES[signal])]));
	for (const signal of SIGNALS) process.on(signal, handlers[signal] as () => void);
	const crashed = (error: unknown): void => leave(2, error);
	const hungUp = (): void => leave(SIGNAL_CODES.SIGHUP);
	process.on('uncaughtException', crashed).on('unhandledRejection', crashed);
	process.on('exit', restore).on('SIGCONT', continued);
	screen.on('resize', repaint).on('error', hungUp);
	for (const stream of [stdout, stdin, stderr]) stream.on('error', hungUp);
	stdin.on('end', hungUp);

	function repaint(): void {
		view = {columns: screen.columns, rows: screen.rows, epoch: view.epoch + 1};
		for (const listener of listeners) listener();
		// A new tree alone leaves stale rows of the old size on the screen, a repaint alone a stale layout: both.
		void handOver(async () => {});
	}

	/** Ink lets go of the terminal, `meanwhile` has it, Ink takes it up again and draws all of it. */
	async function handOver(meanwhile: () => Promise<void>): Promise<void> {
		if (!hooks || suspension || gone) return;
		try {
			suspension = hooks.suspendTerminal();
			const held = await suspension;
			await meanwhile();
			await held.resume();
		} catch (error) {
			crashed(error);
		} finally {
			suspension = null;
		}
	}

	async function halt(): Promise<void> {
		// What gives the terminal back must be out before nobody is there to write it.
		for (let waited = 0; screen.busy() && waited < 200; waited += 10) await pause(10);
		stop();
		await pause(0);
	}

	/** Continued by somebody else's hand: the shell has set the terminal to its own liking. */
	function continued(): void {
		if (suspension || gone) return;
		if (stdin.isTTY) stdin.setRawMode?.(true);
		repaint();
	}

	function restore(): void {
		if (gone) return;
		gone = true;
		if (restoreTerminal(screen, stdin) === 'gone') letGo();
	}

	/** Node aborts at exit when it cannot put a vanished terminal back into its old mode; it leaves closed ones alone. */
	function letGo(): void {
		for (const {isTTY, fd} of [stdin, stdout, stderr]) {
			if (isTTY && fd !== undefined) closeQuietly(fd);
		}
	}

	function leave(code: number, error?: unknown): void {
		if (gone) return;
		onLeave?.(code);
		try {
			hooks?.unmount();
		} catch {
			// Drawing has failed already; the terminal is what matters now.
		}
		restore();
		process.off('exit', restore).off('SIGCONT', continued);
		// Not before this signal has been handed to everybody: who finds itself alone with it raises it again.
		setImmediate(() => {
			for (const signal of SIGNALS) process.off(signal, handlers[signal] as () => void);
		});
		process.off('uncaughtException', crashed).off('unhandledRejection', crashed);
		stdin.off('end', hungUp);
		stdin.unref?.();
		if (error !== undefined)
			stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
		screen.release();
		tell(code);
	}

	return {
		screen,
		viewport: {
			get: () => view,
			subscribe(listener) {
				listeners.add(listener);
				return () => listeners.delete(listener);
			},
		},
		busy: () => screen.busy(),
		redraw: repaint,
		suspend: () => void handOver(halt),
		leave,
		left,
		attach(given) {
			hooks = given;
		},
	};
}

/** 0 is the own process group: the shell's job, with whatever started us. */
const stopGroup = (): void => void process.kill(0, 'SIGSTOP');

function closeQuietly(fd: number): void {
	try {
		closeSync(fd);
	} catch {
		// Closed already.
	}
}

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));

function deferred<T>(): {promise: Promise<T>; resolve(value: T): void} {
	let resolve: (value: T) => void = () => {};
	const promise = new Promise<T>(done => {
		resolve = done;
	});
	return {promise, resolve};
}
