import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {createReadStream, createWriteStream, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pipeline} from 'node:stream/promises';
import {createGzip} from 'node:zlib';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {bundle} from '../drill/support/part-program.ts';

/** 400 MB may take 150 MB, of which node itself needs some 50: a file held whole would show at this size, too. */
const MEGABYTES = Number(process.env.RELIGHT_DATASET_MB ?? 60);
const BOUND = MEGABYTES > 100 ? 150 : 130;

const directory = mkdtempSync(join(tmpdir(), 'relight-dataset-memory-'));
const path = (name: string): string => join(directory, name);
let program: Awaited<ReturnType<typeof bundle>>;
let records = 0;

beforeAll(async () => {
	program = await bundle("import './test/ops/extract/support/measure-scan.ts';");
	const ids = Array.from({length: 2_350}, (_, at) => (at * 7_919) % 163_840);
	const [array, lines] = [createWriteStream(path('merged.json')), createWriteStream(path('merged.jsonl'))];
	array.write('[\n');
	for (let bytes = 0; bytes < MEGABYTES * 1e6; records++) {
		ids[0] = records;
		const text = JSON.stringify({input_ids: ids, loss_mask: ids.map(() => 1), note: 'a ] } "\\'});
		bytes += text.length;
		array.write(`${records > 0 ? ',\n' : ''}${text}`);
		if (!lines.write(`${text}\n`)) await new Promise<void>(resolve => lines.once('drain', () => resolve()));
	}
	array.end('\n]\n');
	lines.end();
	await Promise.all([array, lines].map(each => new Promise<void>(resolve => each.once('finish', () => resolve()))));
	await pipeline(
		createReadStream(path('merged.json')),
		createGzip({level: 1}),
		createWriteStream(path('merged.json.gz')),
	);
}, 60_000);
afterAll(() => {
	program.remove();
	rmSync(directory, {recursive: true});
});

const orders = new Set<string>();

test.each(['merged.json', 'merged.jsonl', 'merged.json.gz'])(
	`${MEGABYTES} MB of %s are read in one pass, hashed and found again, within ${BOUND} MB`,
	async name => {
		const seen = JSON.parse(execFileSync(process.execPath, [program.file, path(name)], {encoding: 'utf8'}));
		if (process.env.RELIGHT_DATASET_MB) process.stdout.write(`${name} ${JSON.stringify(seen)}\n`);
		expect(seen).toMatchObject({records, again: [2_350, 2_350, 2_350]});
		const sum = createHash('sha256');
		for await (const piece of createReadStream(path(name))) sum.update(piece);
		expect(seen.sha256).toBe(sum.digest('hex'));
		expect(seen.megabytes).toBeLessThan(BOUND);
		orders.add(seen.order);
	},
	60_000,
);

test('the same samples in another form of file have the same order hash, and another file hash', () => {
	expect(orders.size).toBe(1);
});
