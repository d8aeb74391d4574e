import {type FSWatcher, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync} from 'node:fs';
import type {BoxPaths} from './paths.ts';

export type Reply = {readonly rc: number; readonly stdout?: string; readonly stderr?: string};

/**
 * The way from a stand-in to the drill: a file of NUL-ended words in one directory, the answer in another. Several at a
 * time are fine; a request whose answer takes long holds up no other.
 */
export class Requests {
	private readonly watcher: FSWatcher;

	constructor(
		private readonly paths: BoxPaths,
		private readonly answer: (words: readonly string[]) => Promise<Reply>,
	) {
		mkdirSync(paths.requests, {recursive: true});
		mkdirSync(paths.answers, {recursive: true});
		this.watcher = watch(paths.requests, () => this.look());
		this.watcher.on('error', () => {});
		this.watcher.unref();
	}

	/** Also called by the clock: a watch may miss one. */
	look(): void {
		let names: string[];
		try {
			names = readdirSync(this.paths.requests);
		} catch {
			return;
		}
		for (const name of names) {
			if (!/^\d+$/.test(name)) continue;
			const path = `${this.paths.requests}/${name}`;
			try {
				const words = readFileSync(path, 'utf8').split('\0').slice(0, -1);
				rmSync(path);
				void this.handle(name, words);
			} catch {
				// Taken by the look before this one.
			}
		}
	}

	private async handle(name: string, words: readonly string[]): Promise<void> {
		const reply = await this.answer(words).catch(error => ({rc: 1, stdout: '', stderr: `${error}\n`}));
		const base = `${this.paths.answers}/${name}`;
		try {
			writeFileSync(`${base}.out`, reply.stdout ?? '');
			writeFileSync(`${base}.err`, reply.stderr ?? '');
			writeFileSync(`${base}.new`, `${reply.rc}\n`);
			renameSync(`${base}.new`, `${base}.rc`);
		} catch {
			// The box is being taken away.
		}
	}

	close(): void {
		this.watcher.close();
	}
}
