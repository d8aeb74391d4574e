import {describe, expect, it} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import type {Link} from '../../../src/ops/formats/topology.ts';
import type {Situation} from '../../../src/ops/operations/operation.ts';
import {preflight, preflightState, standing} from '../../../src/ops/preflight/preflight.ts';
import type {DatasetFacts} from '../../../src/ops/probes/dataset-sum.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import type {WeightsFacts} from '../../../src/ops/probes/weights.ts';
import type {ExtractionConfig, ServerConfig, Target} from '../../../src/ops/target.ts';
import {DATASET, NOW, sampleFacts, UNIT, WEIGHTS} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

const here = (change: Partial<FactValues> = {}, target: Partial<Target> = {}): Situation => ({
	target: {...sampleTarget, ...target},
	facts: factsOf({...sampleFacts, ...change}),
	nowMs: NOW,
});
const states = (situation: Situation) => Object.fromEntries(preflight(situation).map(({id, state}) => [id, state]));
const evidence = (id: string, situation: Situation) =>
	preflight(situation).find(check => check.id === id)?.evidence ?? ['no such check'];

const idle = sampleFacts.gpus.cards.map(card => ({...card, memoryUsedBytes: known(0)}));
const mounts = {...sampleFacts.mounts, mounts: sampleFacts.mounts.mounts.map(mount => ({...mount}))};
const sizedData = (availableBytes: number, writable: (typeof mounts.mounts)[number]['writable'] = 'yes') => ({
	...mounts,
	mounts: mounts.mounts.map(mount =>
		mount.path === '/data'
			? {
					...mount,
					writable,
					size: {kind: 'answered' as const, totalBytes: 1e13, availableBytes, inodes: 9, inodesFree: 9},
				}
			: mount,
	),
});
const MENDED: Partial<FactValues> = {
	gpus: {cards: idle, lost: [], moreAt: 0},
	holders: {...sampleFacts.holders, holders: []},
	services: {manager: 'systemd', units: []},
	mounts: sizedData(6e12),
	extraction: {...sampleFacts.extraction, dumps: []},
	files: {
		...sampleFacts.files,
		files: [
			{
				path: '/tmp/02b_extract_hidden_states_sglang.py',
				role: 'script',
				state: 'present',
				bytes: 9,
				sha256: 'a',
				volatile: false,
			},
			{
				path: sampleTarget.extraction?.dataset ?? '',
				role: 'dataset',
				state: 'present',
				bytes: 9,
				sha256: null,
				volatile: false,
			},
		],
	},
};

describe('preflight', () => {
	it('names everything that is in the way on the box of the incident, with what mends it', () => {
		const checks = preflight(here());
		expect(checks.filter(({state}) => state === 'fail').map(({id, mends}) => [id, mends])).toEqual([
			['free', 'free-gpus'],
			['services', 'stop-service'],
			['mounts', null],
			['stale-dumps', 'clear-dumps'],
			['output', null],
		]);
		expect(evidence('services', here())).toEqual([`${UNIT} is not stopped`, `${UNIT} may come back at the next boot`]);
		expect(preflightState(checks)).toBe('fail');
	});

	it('holds on a box that is mended', () => {
		expect(preflight(here(MENDED)).filter(({state}) => state !== 'pass' && state !== 'absent')).toEqual([]);
	});

	it('counts what was not seen as unknown, never as a pass', () => {
		const nothing: Situation = {target: sampleTarget, facts: factsOf({}), nowMs: NOW};
		expect(Object.entries(states(nothing)).filter(([, state]) => state === 'pass')).toEqual([]);
		expect(preflightState(preflight(nothing))).toBe('unknown');
		const quiet = {...sampleFacts.server, portOwner: unknown('no tool tells')};
		expect(evidence('port', here({...MENDED, server: quiet}))).toEqual([
			'who listens on port 8000 is not known: no tool tells',
		]);
	});

	it('reckons the room that the remaining samples need', () => {
		expect(evidence('output', here({...MENDED, mounts: sizedData(1e12)}))).toEqual([
			'1.00 TB are free on /data, 2.58 TB are needed for the remaining samples',
		]);
		expect(evidence('output', here({...MENDED, mounts: sizedData(6e12, 'emergency read-only')}))).toEqual([
			'/data is emergency read-only',
		]);
	});

	it('offers to restore what dumps only where that is all it takes', () => {
		const files = {...sampleFacts.files, hook: {state: 'unknown' as const, why: 'no answer'}};
		const check = preflight(here({...MENDED, files})).find(({id}) => id === 'dump-way');
		expect([check?.state, check?.mends]).toEqual(['fail', null]);
		expect(preflight(here(MENDED)).find(({id}) => id === 'dump-way')?.mends).toBe('restore-files');
	});

	it.each<[string, Partial<WeightsFacts>, string, string]>([
		['lacks shards', {missing: ['m-7', 'm-8']}, 'fail', 'the model lacks 2 shard(s): m-7, m-8'],
		[
			'has shards that are not whole',
			{damaged: ['a', 'b', 'c', 'd'].map(shard => ({shard, why: 'cut'}))},
			'fail',
			'4 of 64 shards are not whole: a: cut, b: cut, c: cut, …',
		],
		['has none at all', {shards: 0, shardsExpected: null}, 'fail', '/kimi holds no shard (*.safetensors)'],
		['has no index', {shardsExpected: null}, 'warn', '/kimi has no readable index of its shards'],
		['is slow to read', {unread: ['m-9']}, 'unknown', 'the headers of 1 of 64 shards were not read in time'],
	])('says of a model that it %s', (_, change, state, words) => {
		const server = {...(sampleTarget.server as ServerConfig), model: '/kimi'};
		const situation = here({...MENDED, contents: {weights: {...WEIGHTS, ...change}, dataset: DATASET}}, {server});
		expect([states(situation).model, evidence('model', situation)]).toEqual([state, [words]]);
		expect(standing('launch', situation).against).toEqual(state === 'fail' ? [words] : []);
	});

	it.each<[string, Partial<DatasetFacts>, Partial<ExtractionConfig>, string, RegExp | null]>([
		['has as many records as it must', {}, {}, 'pass', null],
		['has fewer', {records: 37_311}, {}, 'fail', /has 37311 records, expected 37312$/],
		['could not be counted', {records: null}, {}, 'unknown', /could not be counted$/],
		['may have any number', {records: null}, {records: null}, 'warn', /extraction\.expect\.records/],
		['has the sum that it must', {records: null, sha256: 'ab'}, {sha256: 'ab'}, 'pass', null],
		['has another', {sha256: 'ab'}, {sha256: 'cd'}, 'fail', /has sha256 ab…, expected cd…$/],
		['could not be read', {}, {sha256: 'cd'}, 'unknown', /the sum of .* could not be read$/],
		['is not that of the run', {begunWith: 'cd', sha256: 'ab'}, {}, 'fail', /has sha256 ab…, the run began with cd…$/],
		['is what is expected, where a run began otherwise', {begunWith: 'cd', sha256: 'ab'}, {sha256: 'ab'}, 'pass', null],
	])('says of a dataset that it %s', (_, change, configured, state, words) => {
		const extraction = {...(sampleTarget.extraction as ExtractionConfig), ...configured};
		const contents = {weights: WEIGHTS, dataset: {...DATASET, ...change}};
		const situation = here({...MENDED, contents}, {extraction});
		expect(states(situation).dataset).toBe(state);
		expect(evidence('dataset', situation)).toEqual(words ? [expect.stringMatching(words)] : []);
	});

	it('says that the script is gone, or will be after a boot', () => {
		const destination = '/tmp/02b_extract_hidden_states_sglang.py';
		const script = {source: '/x', destination, sha256: null, mode: '644', argv: []};
		const {extraction} = sampleTarget;
		const target = {extraction: extraction && {...extraction, script}};
		expect(evidence('script', here({}, target))).toEqual([`${destination} is gone: restore it first`]);
		const file = {path: destination, role: 'script' as const, bytes: 9, sha256: 'a', volatile: true};
		const files = {...sampleFacts.files, files: [{...file, state: 'present' as const}]};
		expect(evidence('script', here({files}, target))).toEqual([`${destination} lies where a boot empties it`]);
	});

	describe('the links between the cards', () => {
		const pair = (word: string, one = 0, other = 1) => ({one, other, word});
		const two = (word: string) => ({cards: 2, links: [pair(word)]});
		const start = (word: string) => ({...sampleFacts.server, lastStart: {phaseMs: {}, topology: two(word)}});
		const checked = (change: Partial<FactValues>, links: Link | null = null, gone = false) => {
			const situation = here({...MENDED, ...change}, {expect: {...sampleTarget.expect, ...(links && {links})}});
			const facts = gone ? {...situation.facts, topology: null} : situation.facts;
			const check = preflight({...situation, facts}).find(({id}) => id === 'topology');
			return [check?.state, check?.stops, ...(check?.evidence ?? [])];
		};

		it('pass with every pair beyond a host bridge by name, where nothing else is expected', () => {
			const topology = {cards: 3, links: [pair('NODE'), pair('SYS', 0, 2), pair('NODE', 1, 2)]};
			expect(checked({topology})).toEqual(['pass', false, '3 cards, 3 pairs: 2 NODE (0-1 1-2), 1 SYS (0-2)']);
			expect(checked({topology: two('NV18')}, 'NV')).toEqual(['pass', false, '2 cards, 1 pair: 1 NV18']);
			expect(checked({topology: {cards: 1, links: []}}, 'NV')).toEqual(['pass', false, 'one card']);
		});

		it('fail where a pair is farther apart than is expected', () => {
			const topology = {cards: 3, links: [pair('NV4'), pair('SYS', 0, 2), pair('PHB', 1, 2)]};
			expect(checked({topology}, 'NV')).toEqual([
				'fail',
				true,
				'GPU 1-2: PHB, expected NVLink',
				'GPU 0-2: SYS, expected NVLink',
			]);
			expect(checked({topology}, 'NODE')).toEqual(['fail', true, 'GPU 0-2: SYS, expected NODE or nearer']);
			expect(checked({topology: two('?')}, 'SYS')).toEqual(['fail', true, 'GPU 0-1: ?, expected SYS or nearer']);
		});

		it('are held against the last start that came up: a lost NVLink stops, another way over PCIe warns', () => {
			const was = 'when the server last came up';
			expect(checked({topology: two('SYS'), server: start('NV18')})).toEqual([
				'fail',
				true,
				`GPU 0-1: SYS, NV18 ${was}`,
			]);
			expect(checked({topology: two('SYS'), server: start('NODE')})).toEqual([
				'warn',
				false,
				`GPU 0-1: SYS, NODE ${was}`,
			]);
			expect(checked({topology: two('NODE'), server: start('NODE')})[0]).toBe('pass');
		});

		it('are unknown, never a pass, where nobody tells; in the way only where something rests on it', () => {
			const words = 'how the cards are linked is not known: no look has ended yet';
			expect(checked({}, null, true)).toEqual(['unknown', false, words]);
			expect(checked({}, 'SYS', true)).toEqual(['unknown', true, words]);
			expect(checked({server: start('NODE')}, null, true)).toEqual(['unknown', true, words]);
		});
	});

	it('has nothing to say where nothing is configured', () => {
		const bare = here(MENDED, {server: null, dump: null, extraction: null});
		expect(states(bare)).toMatchObject({port: 'absent', model: 'absent', output: 'absent', script: 'absent'});
	});

	it('lets a person go on without a check, by its name alone, and says so', () => {
		const situation = here({...MENDED, holders: sampleFacts.holders, extraction: sampleFacts.extraction});
		expect(standing('launch', situation).against).toHaveLength(2);
		const {against, overridden} = standing('launch', {...situation, overrides: ['stale-dumps', 'nonsense']});
		expect(against).toEqual(['8 process(es) hold the cards: free them first']);
		expect(overridden).toEqual([
			'overridden (stale-dumps): 1 stale request(s) in /dev/shm/sglang_hs: clear them first',
		]);
	});
});
