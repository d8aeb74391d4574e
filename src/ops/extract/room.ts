import {mkdirSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {bytesIn, dumpedBytes} from './dumps.ts';
import type {FilePort} from './file-port.ts';

export type RoomLimits = {
	readonly output: string;
	/** So much stays free on the output's disk. */
	readonly keepFreeBytes: number;
	readonly dumps: string;
	/** Where a hook may put finished files, on the output's disk. */
	readonly staging: string;
	/** So much may lie in the two of them, whoever put it there; null: as much as fits. */
	readonly dumpLimitBytes: number | null;
};

export type RoomIo = {
	readonly files: FilePort;
	readonly stop: AbortSignal;
	readonly pollMs: number;
	/** Why it waits; null once it goes on. */
	readonly tell: (why: string | null) => void;
};

/** Lets samples through while both disks have room for them: a full /dev/shm kills the server, a full disk the run. */
export class Room {
	private reservedDumps = 0;
	private reservedStaging = 0;
	private reservedFiles = 0;
	private waiting = 0;

	constructor(
		private readonly limits: RoomLimits,
		private readonly io: RoomIo,
	) {}

	/** Waits for room; what it gives back ends the reservation. null: stopped meanwhile. No dump: the file itself is staged. */
	async enter(dumpBytes: number, fileBytes: number): Promise<(() => void) | null> {
		if (!(await this.until(() => this.missing(dumpBytes, fileBytes)))) return null;
		const stagedBytes = dumpBytes === 0 ? fileBytes : 0;
		this.reservedDumps += dumpBytes;
		this.reservedStaging += stagedBytes;
		this.reservedFiles += fileBytes;
		return () => {
			this.reservedDumps -= dumpBytes;
			this.reservedStaging -= stagedBytes;
			this.reservedFiles -= fileBytes;
		};
	}

	/** After a write that found the disk full, whatever the count of free bytes says. false: stopped meanwhile. */
	async afterFull(why: string): Promise<boolean> {
		this.io.tell(why);
		await sleep(this.io.pollMs, undefined, {signal: this.io.stop}).catch(() => {});
		if (!(await this.until(() => this.missingOnDisk(0)))) return false;
		if (this.waiting === 0) this.io.tell(null);
		return true;
	}

	private async until(missing: () => string | null): Promise<boolean> {
		let told = false;
		for (;;) {
			if (this.io.stop.aborted) return false;
			const why = missing();
			if (why === null) break;
			if (!told) this.waiting++;
			told = true;
			this.io.tell(why);
			await sleep(this.io.pollMs, undefined, {signal: this.io.stop}).catch(() => {});
		}
		if (told && --this.waiting === 0) this.io.tell(null);
		return true;
	}

	private missing(dumpBytes: number, fileBytes: number): string | null {
		return this.missingInDumps(dumpBytes, dumpBytes || fileBytes) ?? this.missingOnDisk(fileBytes);
	}

	private missingInDumps(need: number, needOfLimit: number): string | null {
		const {dumps, staging, dumpLimitBytes} = this.limits;
		try {
			// The patch makes its own directory below it; a vanished one is no reason to stop.
			mkdirSync(dumps, {recursive: true});
			if (dumpLimitBytes !== null) {
				const [dumped, staged] = [dumpedBytes(dumps), bytesIn(staging)];
				const used = dumped + staged + this.reservedDumps + this.reservedStaging;
				if (used > 0 && used + needOfLimit > dumpLimitBytes)
					return `${size(dumped + staged)} lie in ${staged > dumped ? staging : dumps} of at most ${size(dumpLimitBytes)}`;
			}
			const free = this.io.files.freeBytes(dumps);
			return free < this.reservedDumps + need ? `${size(free)} are free in ${dumps}, ${size(need)} are needed` : null;
		} catch (error) {
			return `the dump directory ${dumps} cannot be used: ${error instanceof Error ? error.message : error}`;
		}
	}

	private missingOnDisk(need: number): string | null {
		const {output, keepFreeBytes} = this.limits;
		const free = this.io.files.freeBytes(output);
		return free - this.reservedFiles - need < keepFreeBytes
			? `${size(free)} are free on the disk of ${output}, ${size(keepFreeBytes)} are to stay free`
			: null;
	}
}

const size = (bytes: number): string =>
	bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(bytes >= 1e8 ? 0 : 1)} MB`;
