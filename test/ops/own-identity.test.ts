import {expect, test} from 'vitest';
import {claimsOf} from '../../src/ops/operations/claims.ts';
import {isRefusal} from '../../src/ops/operations/operation.ts';
import {signalProcess} from '../../src/ops/operations/signal.ts';
import {ownIdentity} from '../../src/ops/own-identity.ts';
import {processes} from '../../src/ops/probes/processes.ts';
import {ownLine} from '../../src/ops/probes/protected.ts';
import {process as sample, sampleFacts} from '../ui/support/sample-facts.ts';
import {factsOf, sampleState} from '../ui/support/sample-state.ts';
import {contextOf, look} from './probes/support.ts';

const OWN = {bootId: 'boot-1', pid: 500, startTicks: 77};
const TABLE = [
	sample(1, {parentPid: 0, startTicks: 1}),
	sample(400, {parentPid: 1, startTicks: 70}),
	sample(500, {parentPid: 400, startTicks: 77}),
];

test.each([
	['the plain table of this machine', OWN, {bootId: 'boot-1', processes: TABLE}, [500, 400, 1]],
	['another machine, where that pid is taken', OWN, {bootId: 'boot-2', processes: TABLE}, []],
	[
		'another pid namespace of this machine, where that pid is somebody else',
		OWN,
		{bootId: 'boot-1', processes: [...TABLE.slice(0, 2), sample(500, {parentPid: 400, startTicks: 9_000})]},
		[],
	],
	['another pid namespace, without that pid', OWN, {bootId: 'boot-1', processes: TABLE.slice(0, 2)}, []],
	['a machine that does not tell who we are', null, {bootId: 'boot-1', processes: TABLE}, []],
])('this console in %s', (_, own, table, line) => {
	expect(ownLine(own, table)).toEqual(line);
});

const {target} = sampleState();
const tableOf = (bootId: string) => ({
	target,
	nowMs: 0,
	facts: factsOf({
		...sampleFacts,
		processes: {...sampleFacts.processes, bootId, processes: TABLE},
		holders: {
			...sampleFacts.holders,
			holders: [{...sampleFacts.holders.holders[0]!, pid: 500, startTicks: 77, driverName: 'x'}],
		},
	}),
});

test.each([
	['where the table is ours', 'boot-1', 'this console or what it was started from'],
	['where it is not', 'boot-2', null],
])('a holder with our pid is spared %s, and so it is from a signal', (_, bootId, spared) => {
	const situation = {...tableOf(bootId), own: OWN};
	expect(claimsOf(situation)?.map(claim => claim.spared)).toEqual([spared]);
	const plan = signalProcess.plan({processKey: '500@77', signal: 'TERM'}, situation);
	expect(isRefusal(plan)).toBe(spared !== null);
});

test('for real: this process and its parent are found in the table that a look brings', async () => {
	const line = ownLine(ownIdentity(), await look(processes, contextOf()));
	expect(line.slice(0, 2)).toEqual([process.pid, process.ppid]);
});
