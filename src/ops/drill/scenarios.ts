import {FAULTS, type FaultId, faultOf} from './faults.ts';
import {seeded} from './random.ts';

export type ScenarioName =
	| 'incident'
	| 'hook'
	| 'frozen-ssh'
	| 'frozen-at-launch'
	| 'hung-mount'
	| 'wedged-driver'
	| 'unit-comes-back'
	| 'unit-timer'
	| 'patch-lost'
	| 'wrong-disk'
	| 'disk-full'
	| 'port-taken'
	| 'server-dies-loading'
	| 'server-hangs'
	| 'corrupt-samples'
	| 'nearly-done'
	| 'model-damaged'
	| 'dataset-changed'
	| 'full-and-frozen';

export type Scenario = {
	readonly name: ScenarioName;
	readonly says: string;
	/** What is ruined beyond the incident. How it must end follows from these. */
	readonly faults: readonly FaultId[];
};

export const INCIDENT = 'a service holds all cards, the direct route is mute, the script is gone, samples are cut off';

export const SCENARIOS: readonly Scenario[] = [
	{name: 'incident', says: INCIDENT, faults: []},
	scenario('hook', 'hook'),
	scenario('frozen-ssh', 'frozen-ssh'),
	scenario('frozen-at-launch', 'frozen-launch'),
	scenario('hung-mount', 'hung-mount'),
	scenario('wedged-driver', 'wedged-driver'),
	scenario('unit-comes-back', 'vendor-link'),
	scenario('unit-timer', 'timer'),
	scenario('patch-lost', 'patch-lost'),
	scenario('wrong-disk', 'wrong-disk'),
	scenario('disk-full', 'disk-full'),
	scenario('port-taken', 'port-taken'),
	scenario('server-dies-loading', 'server-dies'),
	scenario('server-hangs', 'server-hangs'),
	scenario('corrupt-samples', 'corrupt-samples'),
	scenario('nearly-done', 'nearly-done'),
	scenario('model-damaged', 'shard-cut'),
	scenario('dataset-changed', 'other-dataset'),
	{
		name: 'full-and-frozen',
		says: 'the data disk is too full, and the direct route is lost while the first looks at it are out',
		faults: ['disk-full', 'hook', 'frozen-ssh'],
	},
];

function scenario(name: ScenarioName, fault: FaultId): Scenario {
	return {name, says: faultOf(fault).says, faults: [fault]};
}

/** Two causes for one thing: with both it would not be known which one is meant. */
const NOT_TOGETHER: readonly (readonly [FaultId, FaultId])[] = [
	['hook', 'patch-lost'],
	['server-dies', 'server-hangs'],
];

/** One to three faults, the same for the same seed. */
export function randomFaults(seed: number): readonly FaultId[] {
	const random = seeded(seed ^ 0xd1ce);
	const wanted = random.whole(1, 4);
	const left = FAULTS.filter(({alone}) => !alone).map(({id}) => id);
	const chosen: FaultId[] = [];
	while (chosen.length < wanted) {
		const [id] = left.splice(random.whole(0, left.length), 1);
		if (id === undefined) break;
		const barred = NOT_TOGETHER.some(pair => pair.includes(id) && pair.some(other => chosen.includes(other)));
		if (!barred) chosen.push(id);
	}
	return chosen;
}

/** How a recovery of a box with these faults must end: a refusal names one of those that nothing gets past. */
export type ExpectedEnd =
	| {readonly outcome: 'recovered'}
	| {
			readonly outcome: 'refused';
			readonly because: readonly RegExp[];
			/** Before the first act. */
			readonly atOnce: boolean;
	  };

export function expectedEnd(faults: readonly FaultId[]): ExpectedEnd {
	const because = faults.flatMap(id => faultOf(id).refused ?? []);
	if (because.length === 0) return {outcome: 'recovered'};
	return {outcome: 'refused', because, atOnce: faults.some(id => faultOf(id).atOnce)};
}

/** `acts`: what the box was told to do. */
export type End = {
	readonly outcome: 'recovered' | 'refused';
	readonly because: string | null;
	readonly acts: number;
};

/** Why an end is not the expected one, in words; null when it is. */
export function objectionTo({outcome, because, acts}: End, expected: ExpectedEnd): string | null {
	if (outcome !== expected.outcome) return `${outcome} where ${expected.outcome} was expected`;
	if (expected.outcome === 'recovered') return null;
	if (expected.atOnce && acts > 0) return `it acted ${acts} times before it refused what could be seen at once`;
	if (expected.because.some(pattern => pattern.test(because ?? ''))) return null;
	return `the refusal does not name its cause (${expected.because.map(({source}) => source).join(' | ')})`;
}

/** One line a scenario: its name, how it must end, what is ruined. */
export function scenarioList(): readonly string[] {
	const width = Math.max(...SCENARIOS.map(({name}) => name.length));
	const line = (name: string, end: string, says: string) => `${name.padEnd(width)}  ${end.padEnd(9)}  ${says}`;
	return [
		...SCENARIOS.map(({name, says, faults}) => line(name, expectedEnd(faults).outcome, says)),
		line('random', 'by faults', 'one to three of these faults at once, chosen by --seed'),
	];
}
