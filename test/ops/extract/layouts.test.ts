import {
	closeSync,
	existsSync,
	openSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	truncateSync,
	writeFileSync,
} from 'node:fs';
import {basename, dirname} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {doneIndices} from '../../../src/ops/extract/inventory.ts';
import type {LayoutName} from '../../../src/ops/extract/layouts.ts';
import {openContainer} from '../../../src/ops/tensor/container.ts';
import {ITEM_BYTES} from '../../../src/ops/tensor/dtype.ts';
import {fileSource} from '../../../src/ops/tensor/source.ts';
import {inRowOrder} from '../../../src/ops/tensor/torch-reader.ts';
import {checkFile} from '../../../src/ops/verify/check-file.ts';
import {SizeRules} from '../../../src/ops/verify/size-rules.ts';
import {Bench} from './support/bench.ts';
import {fiveStates, NORM_WEIGHT, packed} from './support/hook-dumps.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

const use = (layout: LayoutName): void => {
	bench.extraction = {...bench.extraction, layout};
};

/** Rows of several states side by side, made here by hand. */
function beside(...states: Buffer[]): Buffer {
	const rows = (states[0]?.length ?? 0) / (HIDDEN_SIZE * 2);
	return Buffer.concat(
		Array.from({length: rows}, (_, row) =>
			states.map(each => each.subarray(row * HIDDEN_SIZE * 2, (row + 1) * HIDDEN_SIZE * 2)),
		).flat(),
	);
}

/** What a reader of each layout has to find, `key dtype shape` to bytes. */
function wanted(layout: LayoutName, index: number): Record<string, Buffer> {
	const record = bench.records[index];
	if (!record) throw new Error('no such record');
	const {input_ids: ids, loss_mask: mask} = record;
	const [T, H] = [ids.length, HIDDEN_SIZE];
	const {aux_0, aux_1, aux_2, final_pre, final_post} = fiveStates(ids);
	const split = {
		[`input_ids I64 ${T}`]: packed(ids),
		[`loss_mask I64 ${T}`]: packed(mask),
		[`aux_hidden_state BF16 1x${T}x${3 * H}`]: beside(aux_0, aux_1, aux_2),
		[`hidden_state BF16 1x${T}x${H}`]: final_post,
	};
	const list = [aux_0, aux_1, aux_2, final_pre];
	const listed = Object.fromEntries(list.map((state, at) => [`hidden_states[${at}] BF16 ${T}x${H}`, state]));
	return {
		universal: {...split, ...listed},
		specforge: split,
		speculators: {[`token_ids I64 ${T}`]: packed(ids), [`hidden_states BF16 ${T}x4x${H}`]: beside(...list)},
		legacy: {[`input_ids I64 ${T}`]: packed(ids), ...listed, [`loss_mask I64 ${T}`]: packed(mask)},
	}[layout];
}

function found(path: string): Record<string, Buffer> {
	const fd = openSync(path, 'r');
	const {tensors} = openContainer(fileSource(fd), path);
	const read = tensors.map(({name, dtype, shape, stride, offset, range}) => {
		const storage = range.open().read(0, range.bytes);
		return [`${name} ${dtype} ${shape.join('x')}`, inRowOrder(storage, ITEM_BYTES[dtype], offset, shape, stride)];
	});
	closeSync(fd);
	return Object.fromEntries(read);
}

const done = () =>
	doneIndices(
		bench.extraction,
		bench.records.map(record => record.input_ids.length),
	).size;
const LAYOUTS = ['universal', 'specforge', 'speculators', 'legacy'] as const;
const NAMES = {
	universal: 'rows_5-10/data_7.ckpt',
	specforge: 'rows_5-10/data_7.ckpt',
	speculators: 'hs_7.safetensors',
	legacy: 'rows_5-10/data_7.pt',
};

test.each(LAYOUTS)('%s: keys in their order, shapes, types and values are what its readers take', async layout => {
	use(layout);
	await bench.serveHook();
	expect(await bench.run()).toBe(0);
	expect(bench.path(7)).toBe(`${bench.extraction.output}/${NAMES[layout]}`);
	for (const [index] of bench.records.entries()) {
		const right = wanted(layout, index);
		const file = found(bench.path(index));
		expect(Object.keys(file)).toEqual(Object.keys(right));
		for (const [name, bytes] of Object.entries(right)) expect(file[name]?.equals(bytes), name).toBe(true);
	}
	expect(done()).toBe(12);
	expect(bench.manifest()).toMatchObject({layout, dtype: 'bf16', layers: '2 30 58'});
});

test.each(['universal', 'specforge', 'speculators'] as const)(
	'%s: the verifier finds each file good, also by its size alone',
	async layout => {
		use(layout);
		await bench.serveHook();
		await bench.run();
		const options = {level: 'values', hidden: HIDDEN_SIZE, normWeight: NORM_WEIGHT} as const;
		const rules = new SizeRules();
		for (const [index, {input_ids: ids}] of bench.records.entries()) {
			const seen = checkFile(bench.path(index), options, rules);
			expect(seen).toMatchObject({verdict: {verdict: 'done'}, tokens: ids.length, normChecked: true});
			checkFile(bench.path(index), {...options, level: 'stat'}, rules);
			expect(rules.tokensOf(basename(bench.path(index)), seen.identity.bytes)).toBe(ids.length);
			expect(rules.tokensOf(basename(bench.path(index)), seen.identity.bytes - 1)).toBeNull();
		}
	},
);

test.each(LAYOUTS)(
	'%s: a tree is resumed, its damage set aside, and one without a manifest taken over',
	async layout => {
		use(layout);
		await bench.serveHook();
		expect(await bench.run()).toBe(0);
		const whole = bench.records.map((_, index) => readFileSync(bench.path(index)));
		const again = () =>
			bench.records.map((_, index) => readFileSync(bench.path(index)).equals(whole[index] ?? Buffer.alloc(0)));
		bench.server.rids.length = 0;
		expect(await bench.run()).toBe(0);
		expect(bench.server.rids).toEqual([]);
		rmSync(bench.path(2));
		truncateSync(bench.path(3), 900);
		writeFileSync(bench.path(4), whole[5] ?? '');
		writeFileSync(`${dirname(bench.path(6))}/.${basename(bench.path(6))}.99.tmp`, 'half');
		rmSync(bench.file('run.json'));
		rmSync(bench.file('extraction-journal.ndjson'));
		expect(await bench.run()).toBe(4);
		expect(bench.lines.at(-1)).toContain('holds 11 sample files');
		expect(await bench.run({adopt: true})).toBe(0);
		expect(bench.asked()).toEqual([2, 3, 4]);
		expect(again()).toEqual(whole.map(() => true));
		const aside = readdirSync(`${bench.extraction.output}/quarantine`).filter(name => name.endsWith('.bad'));
		expect(aside.map(name => name.split('.')[0]).sort()).toEqual(
			[3, 4, 6].map(index => basename(bench.path(index)).split('.')[0]),
		);
		expect(existsSync(`${bench.extraction.output}/rows_0-5`)).toBe(layout !== 'speculators');
	},
);

test('speculators files have no checksums: after an unclean end a page of zeros is still found', async () => {
	use('speculators');
	await bench.serveHook();
	expect(await bench.run()).toBe(0);
	const journal = readFileSync(bench.file('extraction-journal.ndjson'), 'utf8').trimEnd().split('\n');
	writeFileSync(bench.file('extraction-journal.ndjson'), `${journal.slice(0, -1).join('\n')}\n`);
	const bytes = readFileSync(bench.path(8));
	writeFileSync(bench.path(8), bytes.fill(0, 8192, 12_288));
	bench.server.rids.length = 0;
	expect(await bench.run()).toBe(0);
	expect(bench.asked()).toEqual([8]);
	expect(bench.lines.find(line => line.startsWith('  [8] not whole'))).toContain('hidden_states has 1 zeroed pages');
});

test.each([
	['universal', 'it stores final pre and final post'],
	['specforge', 'it stores final post'],
	['speculators', 'it stores final pre'],
] as const)('%s is refused for a server whose dumps hold one final of unknown norm', async (layout, words) => {
	use(layout);
	await bench.serve();
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toBe(
		`Refused: layout ${layout}: ${words}, and the dumps of this server hold aux 0, aux 1, aux 2, final`,
	);
	expect(readdirSync(bench.dumps)).toEqual([]);
	expect(done()).toBe(0);
});

test('a tree of one layout is not gone on with in another, manifest or not', async () => {
	use('specforge');
	await bench.serveHook();
	await bench.run();
	bench.server.rids.length = 0;
	use('universal');
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain('layout: specforge, now universal; keys: input_ids: I64 [T]; loss_mask');
	rmSync(bench.file('run.json'));
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/12 of 12 files .* hidden_states\[0\] is missing where BF16 \d+x64 belongs/);
	use('speculators');
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(
		/data_\d+\.ckpt is no file of layout speculators, which would be hs_\d+\.safetensors$/,
	);
	use('specforge');
	renameSync(bench.path(1), `${bench.extraction.output}/data_1.ckpt`);
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toContain('data_1.ckpt does not lie where groups of 5 put it');
	expect(bench.server.rids).toEqual([]);
});
