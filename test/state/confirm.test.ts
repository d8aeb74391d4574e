import {expect, test} from 'vitest';
import type {Plan} from '../../src/ops/operations/operation.ts';
import {difference, whyNotYet} from '../../src/state/confirm.ts';
import type {ConfirmOverlay} from '../../src/state/state.ts';

const plan = (change: Partial<Plan> = {}): Plan => ({
	operation: 'stop-service',
	title: 'stop x.service',
	tier: 2,
	confirmWord: 'int4',
	targets: [{kind: 'unit', identity: 'x.service', says: 'x.service'}],
	excluded: [],
	steps: [{kind: 'run', id: 'stop', says: 'stop it', script: 'systemctl stop x', limitMs: 1}],
	warnings: [],
	inverse: null,
	...change,
});
const dialog = (change: Partial<ConfirmOverlay> = {}): ConfirmOverlay => ({
	type: 'confirm',
	plan: plan(),
	typed: '',
	button: 'cancel',
	openedAt: 1_000,
	scroll: 0,
	complaint: null,
	...change,
});

test.each([
	['typed ahead', dialog({typed: 'int4'}), 1_200, 'too soon: typed ahead'],
	['nothing typed', dialog(), 2_000, 'type "int4" to confirm'],
	['half typed', dialog({typed: 'int'}), 2_000, 'type "int4" to confirm'],
	['typed in full', dialog({typed: 'int4'}), 2_000, null],
	[
		'wide, typed in full, not yet read',
		dialog({plan: plan({tier: 3}), typed: 'int4'}),
		2_000,
		'wait 2 s more: this is wide',
	],
	['wide, typed in full, read', dialog({plan: plan({tier: 3}), typed: 'int4'}), 4_001, null],
	['reversible, button on cancel', dialog({plan: plan({tier: 1})}), 2_000, 'the button stands on Cancel'],
	['reversible, button on go', dialog({plan: plan({tier: 1}), button: 'go'}), 2_000, null],
])('%s', (_name, overlay, now, why) => {
	expect(whyNotYet(overlay, now)).toBe(why);
});

test('a target that is new, gone, or reached by other commands is told', () => {
	const other = {kind: 'process' as const, identity: '7@99', says: ''};
	expect(difference(plan(), plan())).toBeNull();
	expect(difference(plan(), plan({targets: [...plan().targets, other]}))).toBe('new since it was shown: 7@99');
	expect(difference(plan({targets: [...plan().targets, other]}), plan())).toBe('gone since it was shown: 7@99');
	expect(
		difference(
			plan(),
			plan({steps: [{kind: 'run', id: 'stop', says: 'stop it', script: 'systemctl stop y', limitMs: 1}]}),
		),
	).toBe('the commands are not the ones that were shown');
});
