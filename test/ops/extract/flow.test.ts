import {mkdirSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {gzipSync} from 'node:zlib';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {until} from '../drill/support/shell.ts';
import {allNull, Bench} from './support/bench.ts';

let bench: Bench;
beforeEach(() => {
	bench = new Bench();
});
afterEach(() => bench.end());

test('the server dies with a sample in flight and comes back: the run goes on by itself, nothing is lost', async () => {
	let served = 0;
	await bench.serve({served: () => ++served === 4 && void bench.server.close()});
	const running = bench.run();
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	const {port} = bench.server;
	await sleep(150);
	await bench.serve({port});
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.events().filter(event => event === 'server-away' || event === 'server-back')).toEqual([
		'server-away',
		'server-back',
	]);
});

test('another server that answers in its place is refused, and what is stored stays', async () => {
	let served = 0;
	const other = {model_path: '/models/kimi', version: '0.5.14'};
	await bench.serve({info: {...other, version: '0.5.9'}, served: () => ++served === 4 && void bench.server.close()});
	const running = bench.run();
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	const {port} = bench.server;
	await bench.serve({port, info: other});
	expect(await running).toBe(4);
	expect(bench.lines.at(-1)).toContain('server.version: 0.5.9, now 0.5.14');
	expect(bench.server.rids).toEqual([]);
	expect(bench.wrong().slice(0, 3)).toEqual([null, null, null]);
});

test('a packed dataset is resumed like a plain one', async () => {
	bench.extraction = {...bench.extraction, dataset: `${bench.extraction.dataset}.gz`};
	writeFileSync(bench.extraction.dataset, gzipSync(JSON.stringify(bench.records)));
	for (const index of [0, 1, 5, 8]) bench.store(index);
	await bench.serve();
	expect(await bench.run({adopt: true})).toBe(0);
	expect(bench.asked('relight-check')).toEqual([0, 5, 8]);
	expect(bench.asked()).toEqual([2, 3, 4, 6, 7, 9, 10, 11]);
	expect(allNull(bench.wrong())).toBe(true);
});

test('a server that hangs is told apart from a slow one: its static answers do not count', async () => {
	await bench.serve();
	bench.server.faults.push('hang');
	const running = bench.run({answerLimitMs: 200});
	await until(bench.progress.bind(bench), ({state}) => state === 'waiting for server');
	await sleep(300);
	expect(bench.progress()).toMatchObject({state: 'waiting for server', extracted: 0});
	bench.server.hang(false);
	expect(await running).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
}, 20_000);

test('a sample that takes the server with it three times is given up, and the others are stored', async () => {
	await bench.serve();
	bench.server.faults.push('hang up', 'hang up', 'hang up');
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toMatch(/, 3 times$/);
	expect(bench.wrong().filter(reason => reason === null).length).toBe(11);
});

test('a slow server is waited for', async () => {
	await bench.serve({prefillMs: 120});
	expect(await bench.run()).toBe(0);
	expect(bench.server.rids.length).toBe(12);
});

test.each([
	['two layers alike', 'layers aux 0 and aux 1 are identical'],
	['a torn dump', 'no dump with'],
	['a row short', 'no dump with'],
	['not finite', 'NaN or infinity in layer final'],
	['cached tokens', 'tokens came from a cache'],
	['other rid', 'the answer is for somebody-else'],
] as const)('%s, three times: the sample fails in words and no byte of it is stored', async (fault, words) => {
	await bench.serve();
	bench.server.faults.push(fault, fault, fault);
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toContain(words);
	expect(bench.wrong().indexOf(null)).toBe(1);
});

test('foreign dumps and probes that shift the counter confuse nothing', async () => {
	let foreign = 0;
	await bench.serve({
		served: () => {
			// A probe of one token, a whole stale request under a number to come, and one without an end.
			const place = `${bench.dumps}/req_${100 + foreign++}`;
			mkdirSync(place);
			writeFileSync(`${place}/aux_0.pt`, 'not a tensor');
			writeFileSync(`${place}/done`, '');
		},
	});
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(readdirSync(bench.dumps).length).toBe(12);
});

test('a vanished dump directory is made again', async () => {
	await bench.serve();
	bench.server.faults.push('the dump directory goes');
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.asked().filter(index => index === 0).length).toBe(2);
});

test('a dataset that changes under the run ends it before a wrong sample is stored', async () => {
	let served = 0;
	await bench.serve({
		served: () => {
			if (++served !== 3) return;
			const text = readFileSync(bench.extraction.dataset, 'utf8');
			writeFileSync(
				bench.extraction.dataset,
				text.replaceAll('"input_ids":[', '"input_ids":[7,').replaceAll('[0', '[1'),
			);
		},
	});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toMatch(/^Refused: .*merged\.json changed under the run: record 3 is not what it was$/);
	expect(bench.wrong().slice(0, 3)).toEqual([null, null, null]);
	expect(bench.server.rids.length).toBe(3);
});

test('two at once: the second is refused with the name of the first', async () => {
	await bench.serve({prefillMs: 20});
	const both = await Promise.all([bench.run(), bench.run()]);
	expect(both.sort()).toEqual([0, 4]);
	expect(bench.lines).toContainEqual(
		expect.stringMatching(new RegExp(`^another writer holds .*: pid ${process.pid} on `)),
	);
	expect(allNull(bench.wrong())).toBe(true);
	expect(bench.server.rids.length).toBe(12);
});

test('with names in the dumps several samples are under way at once, never more than configured', async () => {
	bench.extraction = {...bench.extraction, concurrency: 4};
	await bench.serve({named: true, prefillMs: 15, info: {forward_hooks: '[{"hook_factory":"relight_hs:hook"}]'}});
	expect(await bench.run()).toBe(0);
	expect(bench.server.most()).toBe(4);
	expect(allNull(bench.wrong())).toBe(true);
	expect(readdirSync(bench.dumps)).toEqual([]);
	expect(JSON.parse(readFileSync(bench.file('run.json'), 'utf8')).identity.layers).toBe('2 30 58');
});

const HOOK = {forward_hooks: '[{"hook_factory":"relight_hs:hook"}]'};

test('a prefill that is cut into chunks is put together again', async () => {
	bench.extraction = {...bench.extraction, concurrency: 2};
	await bench.serve({named: true, chunk: 7, info: HOOK});
	expect(await bench.run()).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
	expect(readdirSync(bench.dumps)).toEqual([]);
});

test('what the hook refuses fails in its words, and the next try replaces it', async () => {
	await bench.serve({named: true, info: HOOK});
	bench.server.faults.push('refused by the hook', 'refused by the hook', 'refused by the hook');
	expect(await bench.run()).toBe(1);
	expect(bench.lines.find(line => line.startsWith('  [0] failed: '))).toBe(
		'  [0] failed: the hook refused: not_finite {"state":"aux_0","row":2}',
	);
	expect(bench.wrong().indexOf(null)).toBe(1);
});

test.each([
	['nameless', 'makes nameless dumps, which the extractor does not read'],
	['staging', 'stages files in ids, and this run adopts them from '],
] as const)('a hook told to make dumps with %s is refused in words, not waited for', async (option, words) => {
	const hooks = JSON.stringify([{hook_factory: 'relight_hs:hook', config: {slot: 'write', [option]: 'ids'}}]);
	await bench.serve({named: true, info: {forward_hooks: hooks}});
	expect(await bench.run()).toBe(4);
	expect(bench.lines.at(-1)).toContain(`Refused: the server's hook ${words}`);
	expect(bench.server.rids).toEqual([]);
});

test('without names concurrency stays 1, and the log says so', async () => {
	bench.extraction = {...bench.extraction, concurrency: 4};
	await bench.serve({prefillMs: 5});
	expect(await bench.run()).toBe(0);
	expect(bench.server.most()).toBe(1);
	expect(bench.lines).toContain('Concurrency stays 1: the dumps of this server carry no names');
});

test('told to stop, it finishes the sample in flight; one that does not end is given back', async () => {
	await bench.serve({prefillMs: 60, served: () => bench.stop.abort()});
	expect(await bench.run()).toBe(0);
	expect(bench.wrong().map(reason => reason === null)).toEqual([true, ...Array(11).fill(false)]);
	await bench.end();
	bench = new Bench();
	await bench.serve();
	bench.server.faults.push('hang');
	const running = bench.run({graceMs: 50});
	await until(
		() => bench.server.rids,
		rids => rids.length === 1,
	);
	bench.stop.abort();
	expect(await running).toBe(0);
	expect(bench.progress()).toMatchObject({state: 'stopped', errors: 0});
	expect(bench.ndjson('extraction-journal.ndjson').at(-1)).toMatchObject({run: 'ended', state: 'stopped'});
});
