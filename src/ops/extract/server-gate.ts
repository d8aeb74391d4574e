import {setTimeout as sleep} from 'node:timers/promises';
import type {Client} from './client.ts';

export type GateIo = {
	readonly stop: AbortSignal;
	/** How long the server may stay away before the run gives up. */
	readonly limitMs: number;
	/** true when it starts to wait, false when the server is back. */
	readonly tell: (waiting: boolean) => void;
	/** Before anybody passes: who is it? */
	readonly met: () => Promise<void>;
};

/** Where everybody waits while the server is away; the first to find it gone shuts it. */
export class ServerGate {
	private open = false;
	private hung = false;
	private waiting: Promise<boolean> | null = null;

	constructor(
		private readonly client: Client,
		private readonly io: GateIo,
	) {}

	/** Once the server answers. false: stopped meanwhile. Rejects when it stays away too long. */
	pass(): Promise<boolean> {
		if (this.io.stop.aborted) return Promise.resolve(false);
		if (this.open) return Promise.resolve(true);
		this.waiting ??= this.wait().finally(() => {
			this.waiting = null;
		});
		return this.waiting;
	}

	shut(hung: boolean): void {
		this.open = false;
		this.hung ||= hung;
	}

	private async wait(): Promise<boolean> {
		const until = Date.now() + this.io.limitMs;
		let told = this.hung;
		if (told) this.io.tell(true);
		for (let waitMs = 100; !this.io.stop.aborted; waitMs = Math.min(waitMs * 1.6, 5_000)) {
			if (await this.client.up(this.hung)) {
				await this.io.met();
				this.open = true;
				this.hung = false;
				if (told) this.io.tell(false);
				return true;
			}
			if (Date.now() > until) throw new Error('the server did not answer in time');
			if (!told) this.io.tell(true);
			told = true;
			await sleep(waitMs, undefined, {signal: this.io.stop}).catch(() => {});
		}
		return false;
	}
}
