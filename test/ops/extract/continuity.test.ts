import {afterEach, beforeEach, expect, test} from 'vitest';
import {compareStates, wrongStates} from '../../../src/ops/extract/states.ts';
import {allNull, Bench} from './support/bench.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
	for (let index = 0; index < 6; index++) bench.store(index);
});
afterEach(() => bench.end());

test('some stored samples are extracted again before the first new one, and the result is told', async () => {
	await bench.serve();
	expect(await bench.run({adopt: true})).toBe(0);
	expect(bench.asked('relight-check')).toEqual([0, 3, 5]);
	expect(bench.server.rids.slice(0, 3).every(rid => rid.startsWith('relight-check-'))).toBe(true);
	const words = 'ontinuity: 3 stored samples extracted again, worst cosine 1.00000 (layer aux 0 of sample 0)';
	expect(bench.lines).toContain(`C${words}`);
	expect(bench.ndjson('extraction-events.ndjson').find(({event}) => event === 'continuity')).toMatchObject({
		samples: 3,
		worst: expect.closeTo(1, 6),
		layer: 'aux 0',
	});
	expect(allNull(bench.wrong())).toBe(true);
});

test('its result stands in the progress file while the run goes on', async () => {
	await bench.serve({served: rid => rid.startsWith('relight-9-') && bench.stop.abort()});
	const seen: unknown[] = [];
	const look = setInterval(() => {
		try {
			seen.push(bench.progress().message);
		} catch {}
	}, 2);
	await bench.run({adopt: true});
	clearInterval(look);
	expect(seen.some(words => typeof words === 'string' && words.startsWith('continuity: 3 stored samples'))).toBe(true);
});

test('a server that makes other states is refused with the worst layer, and stores nothing', async () => {
	await bench.serve({shift: 1});
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(
		/^Refused: the server does not make the states that are stored: layer (aux \d|final) of sample \d has cosine -?0\.\d{4}, 0\.999 is the least$/,
	);
	expect(bench.asked()).toEqual([]);
	expect(bench.wrong().filter(reason => reason === null).length).toBe(6);
});

test('how many are compared is configured; 0 compares none', async () => {
	await bench.serve();
	bench.extraction = {...bench.extraction, continuity: 1};
	await bench.run({adopt: true});
	expect(bench.asked('relight-check')).toEqual([5]);
	bench.extraction = {...bench.extraction, continuity: 0};
	await bench.run();
	expect(bench.asked('relight-check')).toEqual([5]);
});

test('a stored sample that cannot be extracted again ends the run: no patch, no extraction', async () => {
	await bench.serve();
	bench.server.faults.push('no dump', 'no dump', 'no dump');
	expect(await bench.run({adopt: true})).toBe(2);
	expect(bench.lines.at(-1)).toMatch(
		/^Failed: a stored sample could not be extracted again: no dump with \d+ rows appeared/,
	);
	expect(bench.asked()).toEqual([]);
});

const bf16 = (...values: number[]): Buffer => {
	const wide = new Uint32Array(Float32Array.from(values).buffer);
	return Buffer.from(Uint16Array.from(wide, value => value >>> 16).buffer);
};

test('states are compared row by row, in direction and length: one long row does not decide for all', () => {
	const one = bf16(10_000, 0, 1, 0, 0, 1);
	expect(compareStates(one, one, 2)).toEqual({cosine: 1, length: 1, distance: 0});
	expect(compareStates(one, bf16(10_000, 0, 0, 1, 1, 0), 2).cosine).toBeCloseTo(1 / 3, 10);
	expect(compareStates(one, bf16(10_000, 0, 2, 0, 0, 4), 2)).toMatchObject({cosine: 1, length: 7 / 3, distance: 4 / 3});
	expect(compareStates(one, bf16(10_000, 0), 2).cosine).toBe(0);
});

test('NaN, infinity and one layer under two names are told, wherever they are', () => {
	const good = {aux_0: bf16(1, 2, 3), aux_1: bf16(2, 3, 4), aux_2: bf16(3, 4, 5), final: bf16(4, 5, 6)};
	expect(wrongStates(good)).toBeNull();
	expect(wrongStates({...good, final: bf16(1, 2, Number.NaN)})).toBe('NaN or infinity in layer final');
	expect(wrongStates({...good, final_post: bf16(1, 2, Number.NaN)})).toBe('NaN or infinity in layer final post');
	expect(wrongStates({...good, aux_0: bf16(1, Number.NEGATIVE_INFINITY, 1, 1)})).toBe('NaN or infinity in layer aux 0');
	expect(wrongStates({...good, aux_2: bf16(1, 2, 3)})).toBe('layers aux 0 and aux 2 are identical');
	expect(wrongStates({...good, final_post: bf16(4, 5, 6)})).toBe('layers final post and final are identical');
	const odd = Buffer.concat([Buffer.alloc(1), bf16(1, Number.NaN)]).subarray(1);
	expect(wrongStates({aux_0: odd})).toBe('NaN or infinity in layer aux 0');
});
