import {join} from 'node:path';
import type {Box} from '../src/ops/drill/box.ts';
import type {FaultId} from '../src/ops/drill/faults.ts';
import {type End, expectedEnd, objectionTo, randomFaults, SCENARIOS, scenarioList} from '../src/ops/drill/scenarios.ts';
import {operationEntry} from '../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan, type RunEvent, type RunOutcome, type Situation} from '../src/ops/operations/operation.ts';
import {RECOVER} from '../src/ops/runbook/recover.ts';
import {planRecovery} from '../src/ops/runbook/run-recovery.ts';
import {type Composition, compose} from './compose.ts';
import {UsageError} from './configuration.ts';
import {operatorOf} from './login.ts';
import {CONTENT_LOOKS, LAUNCH_LOOKS, LOOKS} from './looks.ts';
import type {Options} from './relight.ts';
import {tellEvent} from './run.ts';

/** A random box is one of many: smaller, so that many of them can be recovered. */
const RANDOM_SCALE = 0.1;

type Drill = {readonly scenario: string; readonly seed: number; readonly faults: readonly FaultId[]};

/** The console on the embedded box; without a terminal, or when asked, the whole recovery by itself. */
export async function drill([name = 'incident', ...rest]: readonly string[], options: Options): Promise<number> {
	if (options.list) {
		process.stdout.write(`${scenarioList().join('\n')}\n`);
		return 0;
	}
	const scenario = SCENARIOS.find(each => each.name === name);
	if ((!scenario && name !== 'random') || rest.length > 0) {
		const names = [...SCENARIOS.map(each => each.name), 'random'];
		throw new UsageError(`relight drill: no scenario "${name}"; there are ${names.join(', ')}`);
	}
	const seed = Number(options.seed ?? 1);
	if (!Number.isSafeInteger(seed) || seed < 0) throw new UsageError('relight drill: --seed expects a whole number');
	const attended = process.stdin.isTTY && process.stdout.isTTY && !options.unattended && !options.json;
	const {buildBox} = await import('../src/ops/drill/box.ts');
	const faults = scenario?.faults ?? randomFaults(seed);
	const program = [process.execPath, process.argv[1] ?? ''];
	const build = () => buildBox({faults, seed, program, ...(scenario ? {} : {scale: RANDOM_SCALE})});
	if (options.box) return keepBox(await build());
	if (attended) return (await import('./console.ts')).openDrill(build);
	const box = await build();
	const end = async (code: number) => {
		await box.close();
		process.exit(code);
	};
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void end(130));
	try {
		return await unattended(box, {scenario: name, seed, faults}, options.json === true);
	} finally {
		await box.close();
	}
}

/** A box for `relight --config …` and the other commands, until the first signal. */
async function keepBox(box: Box): Promise<number> {
	process.stdout.write(`box in ${box.directory}\nrelight --config ${box.configFile}\n`);
	await new Promise<void>(resolve => {
		for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
	});
	await box.close();
	return 0;
}

async function unattended(box: Box, {scenario, seed, faults}: Drill, json: boolean): Promise<number> {
	const startedAt = Date.now();
	const say = (text: string) => (json ? process.stderr : process.stdout).write(`${text}\n`);
	say(`drill ${scenario}: box in ${box.directory}`);
	if (scenario === 'random') say(`seed ${seed}: ${faults.join(', ')}`);
	const composition = await compose({
		target: box.target,
		operator: operatorOf(process.env),
		asker: null,
		mode: 'drill',
		readOnly: false,
		journalDirectory: join(box.directory, 'operator/state'),
	});
	const {engine, store} = composition;
	await engine.look(LOOKS);
	// Owners and end records take a second look; a recovery is planned on whole facts.
	await engine.look([...LOOKS, ...CONTENT_LOOKS, ...LAUNCH_LOOKS]);
	for (let turn = 0; turn < 20 && lostOnTheWay(engine.situation()).length > 0; turn++) {
		await new Promise(resolve => setTimeout(resolve, 1_000));
		await engine.look(lostOnTheWay(engine.situation()));
	}
	const {route} = store.getState();
	say(
		`route ${route.label} (${route.state})${route.passedOver.map(each => `; not ${each.label}: ${each.reason}`).join('')}`,
	);
	for (const alert of store.getState().alerts) say(`${alert.level} ${alert.words}`);
	const {plans, steps, outcome, words} = await recover(composition, say);
	const named = namedBy(plans, engine.situation());
	await engine.stop();
	const {expected, before, after, holes, lost, corrupt, wrongKills, outside, acts, comesBack} = await box.score(named);
	const moved = outcome === 'done' && after > before && comesBack.length === 0;
	const end: End = moved ? {outcome: 'recovered', because: null, acts} : {outcome: 'refused', because: words, acts};
	const untouched = lost.length + corrupt.length + wrongKills.length + outside.length === 0;
	const objection = untouched ? objectionTo(end, expectedEnd(faults)) : 'the score is not clean';
	const result = {
		schema: 'relight.drill/1',
		scenario,
		seed,
		faults,
		...end,
		objection,
		steps,
		seconds: seconds(Date.now() - startedAt),
		samples: {expected, before, after, holes: holes.length, lost: lost.length, corrupt: corrupt.length},
		wrongKills: wrongKills.length,
		outsidePlan: outside.length,
		dumps: box.hookWriter() ?? 'the source patch',
	};
	if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
	for (const script of outside) say(`outside every plan: ${script}`);
	say(
		`${result.outcome} in ${result.seconds} s: ${before} samples before, ${after} after of ${expected}; ${holes.length} holes, ${lost.length} lost, ${corrupt.length} corrupt, ${wrongKills.length} wrong kills, ${outside.length} commands outside a plan; dumps by ${result.dumps}`,
	);
	if (end.because) say(`because ${end.because}`);
	if (objection) say(`not as it must end: ${objection}`);
	return objection === null ? 0 : 2;
}

/** A route that freezes under a look takes the look with it: what was asked is asked again, by the next route. */
function lostOnTheWay({facts}: Situation) {
	const gone = ['timeout', 'lost', 'unreachable'];
	return [...LOOKS, ...CONTENT_LOOKS].filter(id => gone.includes(facts[id]?.failing?.failure.kind ?? ''));
}

type StepLine = {readonly id: string; readonly state: string; readonly seconds: number};

type Recovered = {
	readonly plans: readonly Plan[];
	readonly steps: readonly StepLine[];
	readonly outcome: RunOutcome;
	/** The last words: of the refusal, of what failed, or of the good end. */
	readonly words: string;
};

async function recover(composition: Composition, say: (text: string) => void): Promise<Recovered> {
	const {engine} = composition;
	const recovery = planRecovery(RECOVER, engine.situation());
	if ('refused' in recovery) {
		say(`refused: ${recovery.refused}`);
		return {plans: [], steps: [], outcome: 'refused', words: recovery.refused};
	}
	const begun = new Map<number, number>();
	const steps: StepLine[] = [];
	let words = '';
	const outcome = await engine.run(recovery, (event: RunEvent) => {
		tellEvent(event, recovery.plan, say);
		if (event.type === 'ended') words = event.words;
		if (event.type !== 'step') return;
		if (event.state === 'running') begun.set(event.index, begun.get(event.index) ?? event.at);
		else
			steps[event.index] = {
				id: recovery.plan.steps[event.index]?.id ?? '',
				state: event.state,
				seconds: seconds(event.at - (begun.get(event.index) ?? event.at)),
			};
	});
	const stop = outcome === 'done' ? await stopExtractor(composition, say) : null;
	return {plans: [recovery.plan, ...(stop ? [stop] : [])], steps: steps.filter(Boolean), outcome, words};
}

/** The run goes on after the proof; the score wants a tree that stands still. */
async function stopExtractor({engine}: Pick<Composition, 'engine'>, say: (text: string) => void): Promise<Plan | null> {
	await engine.look(['extraction', 'processes']);
	const plan = operationEntry('stop-extractor')?.plan(engine.situation(), null);
	if (!plan || isRefusal(plan)) {
		say(`extractor left running: ${plan?.refused}`);
		return null;
	}
	await engine.run(plan, event => tellEvent(event, plan, say));
	return plan;
}

/** What the plans named, for the score: nothing else may have been signalled or sent. */
function namedBy(plans: readonly Plan[], {facts}: Situation) {
	const units = new Set<string>();
	const signalled = new Set<string>();
	for (const target of plans.flatMap(({targets}) => targets)) {
		if (target.kind === 'unit') units.add(target.identity);
		if (target.kind === 'process') signalled.add(target.identity);
	}
	const run = facts.extraction?.last?.value.run;
	if (run?.pid) signalled.add(`${run.pid}@${run.startTicks}`);
	const steps = plans.flatMap(plan => plan.steps);
	return {units, signalled, scripts: new Set(steps.flatMap(step => (step.kind === 'wait' ? [] : [step.script])))};
}

const seconds = (ms: number) => Math.round(ms / 100) / 10;
