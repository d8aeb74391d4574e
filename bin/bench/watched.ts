import {type IPty, spawn} from '@lydell/node-pty';
import {costOf, percent} from './process-cost.ts';

export type Watched = {
	readonly pty: IPty;
	readonly firstPaintMs: number | null;
	bytes(): number;
	/** Resolves with the time from the write to the next output. */
	keyMs(key: string): Promise<number>;
	end(): void;
};

/** Runs a program in a terminal of the common size; the clock starts at its exec. */
export async function watch(
	file: string,
	args: readonly string[],
	painted: RegExp,
	env: Record<string, string> = {},
): Promise<Watched> {
	const startedAt = performance.now();
	const pty = spawn(file, [...args], {
		cols: 140,
		rows: 45,
		cwd: '/',
		env: {...process.env, TERM: 'xterm-256color', LANG: 'C.UTF-8', ...env} as Record<string, string>,
	});
	let bytes = 0;
	let firstPaintMs: number | null = null;
	let seen = '';
	let waiting: (() => void) | null = null;
	pty.onData(data => {
		bytes += Buffer.byteLength(data);
		if (firstPaintMs === null) {
			seen += data;
			if (painted.test(seen)) firstPaintMs = performance.now() - startedAt;
		}
		waiting?.();
		waiting = null;
	});
	const watched: Watched = {
		pty,
		get firstPaintMs() {
			return firstPaintMs;
		},
		bytes: () => bytes,
		keyMs(key) {
			const at = performance.now();
			return new Promise(resolve => {
				const timer = setTimeout(() => resolve(2_000), 2_000);
				waiting = () => {
					clearTimeout(timer);
					resolve(performance.now() - at);
				};
				pty.write(key);
			});
		},
		end() {
			try {
				process.kill(pty.pid, 'SIGTERM');
			} catch {
				// It ended by itself.
			}
		},
	};
	for (let turn = 0; turn < 400 && firstPaintMs === null; turn++) await sleep(10);
	return watched;
}

export type Figures = {
	readonly cpuPercent: number;
	readonly ownPercent: number;
	readonly residentBytes: number;
	readonly bytesPerSecond: number;
};

export async function measure(watched: Watched, warmUpMs: number, forMs: number): Promise<Figures> {
	await sleep(warmUpMs);
	const before = costOf(watched.pty.pid);
	const bytes = watched.bytes();
	const at = performance.now();
	await sleep(forMs);
	const seconds = (performance.now() - at) / 1_000;
	const after = costOf(watched.pty.pid);
	return {
		cpuPercent: percent(after.familyTicks - before.familyTicks, seconds),
		ownPercent: percent(after.ownTicks - before.ownTicks, seconds),
		residentBytes: after.residentBytes,
		bytesPerSecond: (watched.bytes() - bytes) / seconds,
	};
}

export const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));
