import {type ChildProcess, spawn} from 'node:child_process';
import {readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {startTicksOf} from '../leash.ts';
import type {BoxPaths} from '../paths.ts';
import type {Disguise} from '../population.ts';
import {idler} from '../residents.ts';

type Rank = {readonly child: ChildProcess; readonly pid: number; readonly startTicks: number};

/** The scheduler processes, one a card: idle programs on the leash that the drill is told how to show. */
export class Ranks {
	private ranks: Rank[] = [];
	private ending = false;

	constructor(private readonly paths: BoxPaths) {}

	start(count: number, crashed: (name: string, pid: number, code: number) => void): void {
		for (let index = 0; index < count; index++) {
			const name = nameOf(index);
			// Descriptor 3 is inherited; reading it as stdin ends the program with the drill.
			const child = spawn(idler(this.paths, name), [], {argv0: 'cat', stdio: [3, 'ignore', 'ignore', 3]});
			const pid = child.pid ?? 0;
			this.ranks.push({child, pid, startTicks: startTicksOf(readFileSync(`/proc/${pid}/stat`, 'latin1'))});
			child.on('exit', (code, signal) => {
				if (!this.ending) crashed(name, pid, signal === 'SIGKILL' ? -9 : signal === 'SIGTERM' ? -15 : (code ?? 1));
			});
		}
		this.hold(614);
	}

	/** From now on each holds this much of its card. */
	hold(memoryMib: number): void {
		for (const [index, {pid, startTicks}] of this.ranks.entries()) {
			const disguise: Disguise = {
				name: nameOf(index),
				commandLine: [nameOf(index)],
				residentBytes: 5.2e9,
				devices: ['nvidiactl', 'nvidia-uvm', `nvidia${index}`],
				gpu: {index, memoryMib},
			};
			const path = `${this.paths.disguises}/${pid}`;
			writeFileSync(`${path}.new`, JSON.stringify({startTicks, disguise}));
			renameSync(`${path}.new`, path);
		}
	}

	end(): void {
		this.ending = true;
		for (const {child, pid} of this.ranks) {
			child.kill('SIGTERM');
			rmSync(`${this.paths.disguises}/${pid}`, {force: true});
		}
	}
}

const nameOf = (index: number): string => `sglang::scheduler_TP${index}`;
