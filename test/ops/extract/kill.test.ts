import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {bundle} from '../drill/support/part-program.ts';
import {EXTRACTOR, KillLoop, SERVER} from './support/kill-loop.ts';

/** `npm run kill -- 500` sets it. */
const KILLS = Number(process.env.RELIGHT_KILLS ?? 8);
const SEED = Number(process.env.RELIGHT_SEED ?? 7);

let extractor: Awaited<ReturnType<typeof bundle>>;
let server: Awaited<ReturnType<typeof bundle>>;
const root = mkdtempSync(join(tmpdir(), 'relight-kill-'));
beforeAll(async () => {
	[extractor, server] = await Promise.all([bundle(EXTRACTOR), bundle(SERVER)]);
});
afterAll(() => {
	extractor.remove();
	server.remove();
	rmSync(root, {recursive: true, force: true});
});

test(
	`${KILLS} kills of extractor, server and both: nothing corrupt counts as done, nothing is lost or done again`,
	async () => {
		const loop = new KillLoop({extractor: extractor.file, server: server.file}, root, SEED);
		const {tally} = loop;
		try {
			while (tally.kills < KILLS) {
				await loop.kill();
				if (KILLS > 50 && tally.kills % 25 === 0) process.stdout.write(`${JSON.stringify({...tally})}\n`);
			}
			await loop.end();
		} finally {
			await loop.close();
		}
		expect(tally).toMatchObject({kills: KILLS, corrupt: [], lost: [], duplicated: [], adrift: [], failed: []});
		expect(tally.trees).toBeGreaterThan(0);
		// At each kill no more than were in flight: `adrift`. A late dump can make the next request ambiguous once.
		expect(tally.repeated).toBeLessThanOrEqual(4 * KILLS);
		if (process.env.RELIGHT_KILLS) process.stdout.write(`${JSON.stringify(tally)}\n`);
	},
	40_000 + KILLS * 3_000,
);
