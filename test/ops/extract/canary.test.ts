import {afterEach, beforeEach, expect, test} from 'vitest';
import {canaryTokens} from '../../../src/ops/server/canary-tokens.ts';
import {allNull, Bench} from './support/bench.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

test('two fixed requests come before the first sample, and nothing of them is kept', async () => {
	await bench.serve();
	expect(await bench.run({canary: true})).toBe(0);
	expect(bench.asked('relight-check')).toHaveLength(2);
	expect(bench.server.rids.slice(0, 2).every(rid => rid.startsWith('relight-check-'))).toBe(true);
	expect(allNull(bench.wrong())).toBe(true);
});

test('a server whose dumps are not whole gets no sample, and the length that went wrong names the cause', async () => {
	const {short, long} = canaryTokens(bench.extraction.maxTokens);
	for (const [tokens, fails] of [
		[short, (rid: string) => rid.startsWith('relight-check-')],
		[long, (_: string) => bench.server.rids.length > 1],
	] as const) {
		bench.end();
		bench = new Bench();
		await bench.serve({asked: rid => void (fails(rid) && bench.server.faults.push('a torn dump'))});
		expect(await bench.run({canary: true})).toBe(2);
		expect(bench.lines.at(-1)).toContain(`the canary of ${tokens} tokens did not come back whole`);
		expect(bench.asked()).toEqual([]);
	}
	expect(bench.lines.at(-1)).toContain('--chunked-prefill-size -1');
});
