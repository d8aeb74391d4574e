import {describe, expect, it} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan, type Situation} from '../../../src/ops/operations/operation.ts';
import {known} from '../../../src/ops/probes/probe.ts';
import {NOW, process, sampleFacts} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

const RECORD = {
	launchId: 'abc',
	bootId: 'boot',
	pid: 700,
	startTicks: 7_000,
	unit: 'kimi-abc.service' as string | null,
	port: 8000,
	argv: [],
	log: '/l',
	at: NOW,
};
const server = {...sampleFacts.server, record: RECORD, process: 'alive' as const, phase: 'serving' as const};
const unit = {kind: 'unit' as const, unit: 'kimi-abc.service'};
const FAMILY = [
	process(700, {name: 'python3', owner: unit}),
	process(701, {name: 'sglang::schedul', parentPid: 700, owner: unit}),
	// Adopted by pid 1 when its parent died; the group tells.
	process(702, {name: 'sglang::detoken', parentPid: 1, groupId: 700, owner: {kind: 'none'}}),
];
const STRANGER = process(703, {name: 'python3', parentPid: 1});
const here = (change: Partial<FactValues> = {}): Situation => ({
	target: sampleTarget,
	facts: factsOf({
		...sampleFacts,
		server,
		processes: {...sampleFacts.processes, processes: [process(1, {name: 'systemd'}), ...FAMILY, STRANGER]},
		holders: {...sampleFacts.holders, holders: []},
		gpus: {cards: sampleFacts.gpus.cards.map(card => ({...card, memoryUsedBytes: known(0)})), lost: [], moreAt: 0},
		...change,
	}),
	nowMs: NOW,
});
const planned = (situation: Situation): Plan => {
	const plan = operationEntry('stop-server')?.plan(situation, null) ?? {refused: 'none'};
	if (isRefusal(plan)) throw new Error(plan.refused);
	return plan;
};
const verdict = (id: string, change: Partial<FactValues>) => {
	const step = planned(here()).steps.find(each => each.id === id);
	if (step?.kind !== 'wait') throw new Error('no look');
	return step.until(here(change), NOW);
};
const table = (...processes: (typeof STRANGER)[]) => ({...sampleFacts.processes, processes});

describe('stop-server', () => {
	it('names the whole family of the launch, drains it by its unit, and ends what is left by identity', () => {
		const plan = planned(here());
		expect(plan.targets.map(({identity}) => identity)).toEqual([
			'kimi-abc.service',
			'700@7000',
			'701@7010',
			'702@7020',
		]);
		const scripts = plan.steps.flatMap(step => (step.kind === 'run' ? [step.script] : []));
		expect(scripts[0]).toBe('systemctl stop --no-block -- kimi-abc.service');
		expect(scripts[1]).toContain('sig 702 7020');
		expect(scripts[1]).not.toContain('703');
		const bare = planned(here({server: {...server, record: {...RECORD, unit: null}}}));
		expect(bare.steps[0]).toMatchObject({signals: ['700@7000'], script: expect.stringContaining('kill -s TERM')});
	});

	it('is done when nothing of it is left, the port is free and the memory is back', () => {
		expect(verdict('drained', {processes: table(FAMILY[1] ?? STRANGER, STRANGER)})).toEqual({
			state: 'pending',
			words: '1 process(es) of it left',
		});
		const empty = {processes: table(STRANGER), server: {...server, process: 'gone' as const}};
		expect(verdict('freed', empty).state).toBe('met');
		const taken = {...empty.server, portOwner: known({pid: 702, name: 'sglang'})};
		expect(verdict('freed', {...empty, server: taken}).words).toBe('port 8000 is still held by sglang (pid 702)');
		const full = {...sampleFacts.gpus, cards: sampleFacts.gpus.cards.slice(0, 2)};
		expect(verdict('freed', {...empty, gpus: full}).words).toBe('memory not yet back on card 0, 1');
		const stuck = process(701, {name: 'sglang::schedul', state: 'D', killPending: true, owner: unit});
		expect(verdict('freed', {processes: table(stuck)}).words).toBe('pid 701 cannot die until its I/O returns');
	});

	it('is refused while an extraction works on it, or what belongs to it is not known', () => {
		const ask = (change: Partial<FactValues>, lost: Partial<Situation['facts']> = {}) => {
			const situation = here(change);
			return operationEntry('stop-server')?.plan({...situation, facts: {...situation.facts, ...lost}}, null);
		};
		const run = {...(sampleFacts.extraction.run ?? {}), alive: true} as NonNullable<FactValues['extraction']['run']>;
		expect(ask({extraction: {...sampleFacts.extraction, run}})).toEqual({
			refused: 'an extraction is running on it: stop that first',
		});
		expect(ask({}, {processes: null})).toEqual({
			refused: 'the process table is not known: the last look failed or has not come',
		});
	});
});
