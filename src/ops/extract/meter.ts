/** Rates of what was really extracted; skipped samples never count. Times in ms. */
export class Meter {
	extracted = 0;
	tokens = 0;
	bytes = 0;
	private readonly recent: {at: number; tokens: number; bytes: number}[] = [];
	private startedAt: number | null = null;

	/** From here time counts; called when the first request goes out, and again after a wait for the server. */
	start(nowMs: number): void {
		this.startedAt ??= nowMs;
	}

	add(tokens: number, bytes: number, nowMs: number): void {
		this.extracted++;
		this.tokens += tokens;
		this.bytes += bytes;
		this.recent.push({at: nowMs, tokens, bytes});
		while (this.recent.length > 2 && (this.recent[0]?.at ?? nowMs) < nowMs - WINDOW_MS) this.recent.shift();
	}

	/** Over the last minute, or since the start while that is shorter; null before there is anything to divide. */
	rates(nowMs: number): {samples: number; tokens: number; bytes: number} | null {
		if (this.startedAt === null || this.extracted === 0) return null;
		const from = Math.max(this.startedAt, nowMs - WINDOW_MS);
		const inside = this.recent.filter(({at}) => at >= from);
		const seconds = Math.max(nowMs - from, 1) / 1_000;
		const sum = (pick: (one: {tokens: number; bytes: number}) => number): number =>
			inside.reduce((total, one) => total + pick(one), 0) / seconds;
		return {samples: inside.length / seconds, tokens: sum(one => one.tokens), bytes: sum(one => one.bytes)};
	}

	/** From the tokens that remain: between the better and the worse of the recent and the whole rate, with a margin. */
	eta(remainingTokens: number, nowMs: number): {low: number; high: number} | null {
		const recent = this.rates(nowMs);
		if (recent === null || this.startedAt === null) return null;
		const whole = this.tokens / (Math.max(nowMs - this.startedAt, 1) / 1_000);
		const [slow, fast] = [Math.min(recent.tokens, whole), Math.max(recent.tokens, whole)];
		if (slow <= 0) return null;
		return {low: Math.round((remainingTokens / fast) * 950), high: Math.round((remainingTokens / slow) * 1_100)};
	}
}

const WINDOW_MS = 60_000;
