import {rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {floatTest, lanesOf} from '../../src/ops/tensor/non-finite.ts';
import {atLeast, atMost, best, compared, cost, has, say, type Turn} from './cost.ts';
import {look, often} from './look.ts';
import {finiteNoise, type Samples} from './samples.ts';
import {catOf, cool, type Torch, testzipOf, unzipOf} from './verify-peers.ts';

/** Looks per file and turn: the start of a thread, once per run, must not count for much. */
const LOOKS = 6;
const ROUNDS = 5;
const PAIRS = 15;

const here =
	(paths: readonly string[], level: 'crc' | 'values'): Turn =>
	() =>
		cost(() => look(paths, level, 0));

export async function values({paths, bytes}: Samples): Promise<void> {
	const costs = await compared(PAIRS, bytes, {crc: here(paths, 'crc'), values: here(paths, 'values')});
	atMost('values: on top of crc, CPU', (costs.values.cpuMs / costs.crc.cpuMs - 1) * 100, '%', 15);
}

const BF16_BYTES = 100_000_000;
/** As the full pass has them at hand: read before, and summed. */
const BLOCK_BYTES = 512 * 1024;
const SHORT_TURNS = 10;

/** The test alone, on as many bytes as torch gets; ours sees infinity, too. */
export async function finite(folder: string, torch: Torch | null): Promise<void> {
	const lanes = lanesOf('BF16');
	if (!torch || !lanes) return;
	const path = join(folder, 'states.bin');
	writeFileSync(path, finiteNoise(BF16_BYTES / 2));
	const test = floatTest(BLOCK_BYTES);
	new Uint8Array(test.memory).set(finiteNoise(BLOCK_BYTES / 2));
	let found = false;
	const ours = (): void => {
		for (let left = BF16_BYTES; left > 0; left -= BLOCK_BYTES)
			found = test.any(0, Math.min(BLOCK_BYTES, Math.floor(left / 64) * 64), lanes) || found;
	};
	const costs = await compared(
		ROUNDS,
		BF16_BYTES,
		{
			'NaN and infinity': () => best(ours, SHORT_TURNS),
			'torch.any(torch.isnan())': () => torch.isnan(path, SHORT_TURNS),
		},
		`least of ${ROUNDS} x ${SHORT_TURNS}`,
	);
	rmSync(path);
	if (found) throw new Error('a finite value was taken for none');
	const {'NaN and infinity': own, 'torch.any(torch.isnan())': theirs} = costs;
	atLeast('NaN and infinity: times as fast as torch.isnan, CPU', theirs.cpuMs / own.cpuMs, 'x', 20);
}

/** CPU where one thread is compared with one, wall where the number of threads is the point. */
export async function everyByte({paths, bytes}: Samples, torch: Torch | null, native: boolean): Promise<void> {
	const threads = (workers: number): Turn => {
		return async () => {
			const {wallMs, cpuMs} = await cost(() => look(often(paths, LOOKS), 'crc', workers));
			return {wallMs: wallMs / LOOKS, cpuMs: cpuMs / LOOKS};
		};
	};
	const [unzip, testzip] = [unzipOf(paths), testzipOf(paths)];
	const costs = await compared(ROUNDS, bytes, {
		crc: here(paths, 'crc'),
		'crc, 1 worker': threads(1),
		'crc, 2 workers': threads(2),
		cat: catOf(paths),
		...(unzip && {'unzip -t': unzip}),
		...(testzip && {'zipfile.testzip': testzip}),
		...(torch && {'torch.load': () => torch.load(paths, 1)}),
	});
	const {crc, 'crc, 1 worker': one, 'crc, 2 workers': two} = costs;
	const {'unzip -t': unzipped, 'zipfile.testzip': tested, 'torch.load': loaded} = costs;
	if (unzipped) {
		atLeast('crc, 1 thread: times as fast as unzip -t, CPU', unzipped.cpuMs / crc.cpuMs, 'x', native ? 20 : 12);
		atLeast('crc, 2 workers: times as fast as unzip -t, wall', unzipped.wallMs / two.wallMs, 'x', 33, '38');
		if (!native) say('  (33 is for a native crc: reading and zlib on two cores end at 22 to 27)');
	}
	if (tested) atLeast('crc, 2 workers: times as fast as testzip, wall', tested.wallMs / two.wallMs, 'x', 2.5);
	if (loaded) atLeast('crc, 2 workers: times as fast as torch.load, wall', loaded.wallMs / two.wallMs, 'x', 7);
	atLeast('crc: 2 workers against 1, wall', one.wallMs / two.wallMs, 'x', 1.6);
}

/** More than elsewhere: memory that is new to a virtual machine costs twice as much, and each must meet memory that is not. */
const COLD_ROUNDS = 8;

export async function wholeCold({paths, bytes}: Samples): Promise<void> {
	if (!has('dd')) return say('cold reads: not compared, no dd here');
	const cat = catOf(paths);
	const costs = await compared(COLD_ROUNDS, bytes, {
		'cat, cold': () => {
			cool(paths);
			return cat();
		},
		'crc, 2 workers, cold': () => {
			cool(paths);
			return cost(() => look(paths, 'crc', 2));
		},
	});
	const share = costs['cat, cold'].wallMs / costs['crc, 2 workers, cold'].wallMs;
	atLeast('crc cold, 2 workers: share of the speed of cat, wall', share, 'x', 0.9, '1');
}
