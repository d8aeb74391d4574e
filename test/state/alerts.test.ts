import {expect, test} from 'vitest';
import type {FactValues} from '../../src/ops/facts.ts';
import {record} from '../../src/ops/facts.ts';
import {bad} from '../../src/ops/outcome.ts';
import {type AlertMemory, judgeAlerts} from '../../src/state/alerts.ts';
import {mount, NOW, process, sampleFacts, UNIT} from '../ui/support/sample-facts.ts';
import {factsOf, sampleState, sampleTarget} from '../ui/support/sample-state.ts';

const {route} = sampleState();
const see = (change: Partial<FactValues> = {}, at = NOW, memory: AlertMemory = new Map()) =>
	judgeAlerts({facts: factsOf({...sampleFacts, ...change}), target: sampleTarget, nowMs: at, route}, memory, new Set());
const words = (alerts: readonly {words: string}[]) => alerts.map(alert => alert.words);

test('the incident, worst first: what is wrong at once, and what only once it lasts', () => {
	const first = see();
	expect(words(first.alerts)).toEqual([
		`${UNIT} is running and comes back at boot`,
		'/data does not answer',
		'pid 9120 (python3) stuck in D at rpc_wait_bit_killable',
		'1 stored file(s) are not whole',
		'extraction script gone: ',
	]);
	const later = see({}, NOW + 10_000, first.memory);
	expect(words(later.alerts)).toContain('8 GPU(s) held at 0 % busy');
});

test('an alert stays for a moment after its cause is gone, then clears, and begins anew', () => {
	const first = see();
	const well = {services: {manager: 'systemd' as const, units: []}};
	const second = see(well, NOW + 1_000, first.memory);
	expect(words(second.alerts)).toContain(`${UNIT} is running and comes back at boot`);
	const third = see(well, NOW + 5_000, second.memory);
	expect(words(third.alerts)).not.toContain(`${UNIT} is running and comes back at boot`);
	expect(see({}, NOW + 9_000, third.memory).alerts[0]?.since).toBe(NOW + 9_000);
});

test('a task that its control group froze is not said to wait for I/O', () => {
	const one = process(70, {name: 'python3', state: 'D', stuckSince: NOW - 60_000, waitChannel: '__refrigerator'});
	const {alerts} = see({processes: {...sampleFacts.processes, processes: [one]}});
	expect(alerts.filter(({pane}) => pane === 'processes').map(each => [each.words, each.remedy])).toEqual([
		[
			'pid 70 (python3) frozen by its control group',
			'thaw its control group (freezer.state, or what paused it); until then it does not even hear SIGKILL',
		],
	]);
});

test('a mount may be read-only on purpose, but not one that the work writes to', () => {
	const readOnly = (path: string) =>
		see({mounts: {missing: [], mounts: [mount('/'), mount(path, {writable: 'read-only mount', expected: true})]}})
			.alerts;
	expect(words(readOnly('/shared')).filter(each => each.startsWith('/shared'))).toEqual([]);
	expect(words(readOnly('/data'))).toContain('/data: read-only mount');
});

test('an emergency read-only file system and a missing mount are critical', () => {
	const {alerts} = see({mounts: {missing: ['/data'], mounts: [mount('/x', {writable: 'emergency read-only'})]}});
	expect(alerts.filter(({level, pane}) => level === 'critical' && pane === 'mounts').map(each => each.words)).toEqual([
		'/data is not mounted',
		'/x: emergency read-only',
	]);
});

test("a silent driver is told after five seconds, in the tool's words, while the old values stay", () => {
	const facts = factsOf(sampleFacts);
	const failing = {
		...facts,
		gpus: record(facts.gpus, bad({kind: 'timeout', afterMs: 7_000}), {turn: 9, startedAt: NOW, at: NOW}),
	};
	const judge = (at: number, memory: AlertMemory) =>
		judgeAlerts({facts: failing, target: sampleTarget, nowMs: at, route}, memory, new Set());
	const first = judge(NOW, new Map());
	expect(words(first.alerts)).not.toContain('cards: no answer in 7 s');
	expect(words(judge(NOW + 5_000, first.memory).alerts)).toContain('cards: no answer in 7 s');
	expect(failing.gpus.last?.value.cards).toHaveLength(8);
});

test('an acknowledged alert goes below the others and stays', () => {
	const id = see().alerts[0]?.id ?? '';
	const {alerts} = judgeAlerts(
		{facts: factsOf(sampleFacts), target: sampleTarget, nowMs: NOW, route},
		new Map(),
		new Set([id]),
	);
	expect(alerts.at(-1)).toMatchObject({id, acknowledged: true});
});
