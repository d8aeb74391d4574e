import {describe, expect, it} from 'vitest';
import type {FactValues} from '../../../src/ops/facts.ts';
import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan, type Situation} from '../../../src/ops/operations/operation.ts';
import type {DoneWork} from '../../../src/ops/operations/undo.ts';
import {NOW, sampleFacts, service, UNIT} from '../../ui/support/sample-facts.ts';
import {factsOf, sampleTarget} from '../../ui/support/sample-state.ts';

const STOPPED: DoneWork = {
	operation: 'stop-service',
	title: `stop ${UNIT}`,
	on: [UNIT],
	inverse: `systemctl enable --now -- ${UNIT}`,
	at: NOW - 60_000,
};
const here = (done: readonly DoneWork[], change: Partial<FactValues> = {}): Situation => ({
	target: sampleTarget,
	facts: factsOf({...sampleFacts, ...change}),
	nowMs: NOW,
	done,
});
const asked = (situation: Situation) => operationEntry('undo')?.plan(situation, null) ?? {refused: 'no such operation'};
const planned = (situation: Situation): Plan => {
	const plan = asked(situation);
	if (isRefusal(plan)) throw new Error(plan.refused);
	return plan;
};
const verdict = (change: Partial<FactValues>) => {
	const step = planned(here([STOPPED])).steps[1];
	if (step?.kind !== 'wait') throw new Error('no look');
	return step.until(here([STOPPED], change), NOW);
};

describe('undo', () => {
	it('runs the very command that was shown, and looks whether it is as before', () => {
		const plan = planned(here([STOPPED]));
		expect(plan.steps[0]).toMatchObject({kind: 'run', script: STOPPED.inverse});
		expect(plan.targets).toEqual([
			{kind: 'unit', identity: UNIT, says: expect.stringContaining(`${UNIT}  stop-service of 20`)},
		]);
		const off = service({activeState: 'inactive', subState: 'dead', unitFileState: 'disabled', wantedBy: [], pids: []});
		expect(verdict({services: {manager: 'systemd', units: [off]}})).toEqual({
			state: 'pending',
			words: `${UNIT} is stopped, comes back at boot: no`,
		});
		expect(verdict({services: {manager: 'systemd', units: [service()]}}).state).toBe('met');
	});

	it('takes the newest that has a way back, and nothing twice', () => {
		const freed: DoneWork = {...STOPPED, operation: 'free-gpus', inverse: null};
		expect(planned(here([STOPPED, freed])).title).toBe(`take back: stop ${UNIT}`);
		const undone: DoneWork = {...STOPPED, operation: 'undo', title: `take back: stop ${UNIT}`, inverse: null};
		expect(asked(here([STOPPED, undone]))).toEqual({refused: `already taken back: take back: stop ${UNIT}`});
		expect(asked(here([freed]))).toEqual({refused: 'nothing in the journal that can be taken back'});
		expect(asked(here([]))).toEqual({refused: 'nothing in the journal that can be taken back'});
	});
});
