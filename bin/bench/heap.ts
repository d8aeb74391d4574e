import {existsSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {sleep, type Watched} from './watched.ts';

const FRAMES = 4_000;
const WARM_UP = 800;
const FRAME_MS = 34;

/** Node options that make a program collect its garbage and say what is left, each time it gets SIGUSR2. */
export function heapOptions(folder: string): {readonly options: string; read(pid: number): Promise<number>} {
	const preload = join(folder, 'heap.cjs');
	const answer = join(folder, 'heap.txt');
	writeFileSync(
		preload,
		`process.on('SIGUSR2', () => { global.gc(); global.gc(); require('node:fs').writeFileSync(${JSON.stringify(answer)}, String(process.memoryUsage().heapUsed)); });\n`,
	);
	return {
		options: `--require ${preload}`,
		async read(pid) {
			rmSync(answer, {force: true});
			process.kill(pid, 'SIGUSR2');
			for (let turn = 0; turn < 200 && !(existsSync(answer) && readFileSync(answer, 'utf8')); turn++) await sleep(20);
			return Number(readFileSync(answer, 'utf8'));
		},
	};
}

/** Heap after collection, before and after so many frames, each brought about by a key that changes the screen. */
export async function heapGrowth(
	watched: Watched,
	read: (pid: number) => Promise<number>,
): Promise<{readonly before: number; readonly after: number; readonly frames: number}> {
	const frames = async (count: number) => {
		for (let frame = 0; frame < count; frame++) {
			watched.pty.write('\t');
			await sleep(FRAME_MS);
		}
		await sleep(2_000);
	};
	// Bounded caches fill first: what counts is what grows after that.
	await frames(WARM_UP);
	const before = await read(watched.pty.pid);
	await frames(FRAMES);
	return {before, after: await read(watched.pty.pid), frames: FRAMES};
}
