import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {HIDDEN_SIZE} from '../../../src/ops/drill/build-data.ts';
import {LAYOUTS} from '../../../src/ops/extract/layouts.ts';
import {formPieces, planForm} from '../../../src/ops/extract/sample-file.ts';
import {readStates} from '../../../src/ops/extract/stored-states.ts';
import {Bench} from './support/bench.ts';
import {fiveStates, postNorm} from './support/hook-dumps.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

const {form} = LAYOUTS.legacy;

/** A file of the incident's tree with this final. */
function put(index: number, side: 'pre' | 'post'): string {
	const {input_ids: inputIds, loss_mask: lossMask} = bench.records[index] ?? {input_ids: [], loss_mask: []};
	const {aux_0, aux_1, aux_2, ...finals} = fiveStates(inputIds);
	const states = {aux_0, aux_1, aux_2, final: finals[`final_${side}`]};
	const plan = planForm(form, `data_${index}`, inputIds.length, HIDDEN_SIZE);
	mkdirSync(dirname(bench.path(index)), {recursive: true});
	writeFileSync(
		bench.path(index),
		Buffer.concat([...formPieces(form, plan, {index, inputIds, lossMask}, states, HIDDEN_SIZE)]),
	);
	return bench.path(index);
}

/** The sides that the files' finals lie on, each once, by comparison with the model's own. */
function sides(): string[] {
	const found = bench.records.map(({input_ids: ids}, index) => {
		const {final} = readStates(bench.path(index), form, HIDDEN_SIZE);
		const own = fiveStates(ids);
		return final?.equals(own.final_pre) ? 'pre' : final?.equals(own.final_post) ? 'post' : 'neither';
	});
	return [...new Set(found)];
}

const hook = () => bench.serveHook();
const FIRST = [0, 1, 2, 3];

test('a new tree of the source patch has finals of unknown side, and goes on with them', async () => {
	await bench.serve();
	expect(await bench.run()).toBe(0);
	expect(bench.manifest()).toMatchObject({norm: 'unknown', layout: 'legacy'});
	expect(await bench.run()).toBe(0);
});

test('a new tree of the hook gets the final before the norm', async () => {
	await hook();
	expect(await bench.run()).toBe(0);
	expect(bench.manifest().norm).toBe('pre');
	expect(sides()).toEqual(['pre']);
});

test('with the norm weight of the model the finals of the source patch are told apart', async () => {
	bench.giveWeights();
	await bench.serve({final: 'post'});
	expect(await bench.run()).toBe(0);
	expect(bench.manifest().norm).toBe('post');
	expect(sides()).toEqual(['post']);
	bench.extraction = {...bench.extraction, layout: 'specforge', output: `${bench.directory}/second/out`};
	expect(await bench.run()).toBe(0);
	const [ids] = bench.records.map(record => record.input_ids);
	const {final_post: found} = readStates(bench.path(0), LAYOUTS.specforge.form, HIDDEN_SIZE);
	expect(found?.equals(postNorm(fiveStates(ids ?? []).final_pre))).toBe(true);
});

test.each(['pre', 'post'] as const)(
	'with it a tree of finals %s-norm gets its own of the two that the hook gives',
	async side => {
		bench.giveWeights();
		bench.extraction = {...bench.extraction, continuity: 0};
		for (const index of FIRST) put(index, side);
		await hook();
		expect(await bench.run({adopt: true})).toBe(0);
		expect(bench.manifest().norm).toBe(side);
		expect(sides()).toEqual([side]);
	},
);

test('with it a patch that dumps the other side is refused, and the tree stays', async () => {
	bench.giveWeights();
	bench.extraction = {...bench.extraction, continuity: 0};
	for (const index of FIRST) put(index, 'pre');
	await bench.serve({final: 'post'});
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toBe(
		'Refused: layout legacy: it stores final pre, and the dumps of this server hold aux 0, aux 1, aux 2, final post',
	);
	expect(bench.asked()).toEqual([4]);
});

test('with it a tree that mixes sides is refused, two files named', async () => {
	bench.giveWeights();
	const [one, other] = [put(0, 'pre'), put(1, 'post')];
	await hook();
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toBe(
		`Refused: ${bench.extraction.output} mixes final states: ${one} holds the one before the norm, ${other} the one behind the norm`,
	);
	expect(bench.server.rids).toEqual([]);
});

test('with it a dump that has its finals the wrong way round is never stored', async () => {
	bench.giveWeights();
	await bench.serveHook({swapFinals: true});
	bench.extraction = {...bench.extraction, layout: 'universal'};
	expect(await bench.run()).toBe(2);
	expect(bench.lines.at(-1)).toContain('the final state before the norm of the dump is the one behind the norm');
	expect(bench.ndjson('extraction-journal.ndjson').some(entry => 'proof' in entry)).toBe(false);
});

test.each(['pre', 'post'] as const)(
	'without weights the comparison finds that stored finals are %s-norm',
	async side => {
		for (const index of FIRST) put(index, side);
		await hook();
		expect(await bench.run({adopt: true})).toBe(0);
		expect(bench.manifest().norm).toBe(side);
		expect(sides()).toEqual([side]);
		expect(await bench.run({adopt: true})).toBe(0);
	},
);

test('without weights and without a comparison nothing is mixed in', async () => {
	bench.extraction = {...bench.extraction, continuity: 0};
	for (const index of FIRST) put(index, 'post');
	await hook();
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toMatch(
		/^Refused: whether the stored final states lie before or behind the norm is not known/,
	);
	expect(bench.asked()).toEqual([4]);
});

test('a tree whose side is known goes on with a patch once its dumps are found to be the same in value', async () => {
	await hook();
	expect(await bench.run()).toBe(0);
	await bench.server.close();
	writeFileSync(bench.path(4), readFileSync(bench.path(4)).subarray(0, 900));
	await bench.serve();
	expect(await bench.run()).toBe(0);
	expect(sides()).toEqual(['pre']);
	await bench.server.close();
	writeFileSync(bench.path(4), '');
	await bench.serve({final: 'post'});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain('layer final pre of sample');
});

test('states that only point the same way are not the same', async () => {
	for (const index of FIRST) put(index, 'pre');
	await bench.serve({final: 'long'});
	expect(await bench.run({adopt: true})).toBe(4);
	expect(bench.lines.at(-1)).toBe(
		'Refused: the server does not make the states that are stored: layer final of sample 0 points the same way and is 4.00 times as long',
	);
});
