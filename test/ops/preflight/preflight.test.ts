import {describe, expect, it} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import type {Situation} from '../../../src/ops/operations/operation.ts';
import {preflight, preflightState, standing} from '../../../src/ops/preflight/preflight.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import type {Target} from '../../../src/ops/target.ts';
import {NOW, sampleFacts, UNIT} from '../../ui/support/sample-facts.ts';
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
