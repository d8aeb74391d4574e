/** The server's log in SGLang's form. Written with plain calls: the order of lines is the order of events. */
export class ServerLog {
	line(text: string, rank: number | null = null): void {
		const stamp = new Date().toISOString().slice(0, 19).replace('T', ' ');
		process.stdout.write(`[${stamp}${rank === null ? '' : ` TP${rank}`}] ${text}\n`);
	}

	/** Without a prefix: progress bars, tracebacks. */
	raw(text: string): void {
		process.stdout.write(text);
	}

	/** tqdm draws over itself with carriage returns; the last state is drawn again by the second bar. */
	shards(done: number, total: number, seconds: number): void {
		const percent = String(Math.round((done / total) * 100)).padStart(3);
		const rate = done === 0 ? '?' : (done / seconds).toFixed(2).padStart(5);
		const left = done === 0 ? '?' : clock(((total - done) * seconds) / done);
		this.raw(
			`\rLoading safetensors checkpoint shards: ${percent}% Completed | ${done}/${total} [${clock(seconds)}<${left}, ${rate}it/s]`,
		);
	}
}

const clock = (seconds: number): string =>
	`${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
