import {join} from 'node:path';
import type {Box, Scenario} from '../src/ops/drill/box.ts';
import {operationEntry} from '../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan, type RunOutcome, type Situation} from '../src/ops/operations/operation.ts';
import {RECOVER} from '../src/ops/runbook/recover.ts';
import {planRecovery} from '../src/ops/runbook/run-recovery.ts';
import {type Composition, compose} from './compose.ts';
import {UsageError} from './configuration.ts';
import {operatorOf} from './login.ts';
import {LOOKS} from './looks.ts';
import type {Options} from './relight.ts';
import {tellEvent} from './run.ts';

const SCENARIOS: readonly Scenario[] = ['incident', 'frozen-ssh', 'hook'];

/** The console on the embedded box; without a terminal, or when asked, the whole recovery by itself. */
export async function drill([name = 'incident', ...rest]: readonly string[], options: Options): Promise<number> {
	const scenario = SCENARIOS.find(each => each === name);
	if (!scenario || rest.length > 0)
		throw new UsageError(`relight drill: no scenario "${name}"; there are ${SCENARIOS.join(', ')}`);
	const seed = Number(options.seed ?? 1);
	if (!Number.isSafeInteger(seed) || seed < 0) throw new UsageError('relight drill: --seed expects a whole number');
	const attended = process.stdin.isTTY && process.stdout.isTTY && !options.unattended && !options.json;
	const {buildBox} = await import('../src/ops/drill/box.ts');
	const build = () => buildBox({scenario, seed, program: [process.execPath, process.argv[1] ?? '']});
	if (options.box) return keepBox(await build());
	if (attended) return (await import('./console.ts')).openDrill(build);
	const box = await build();
	const end = async (code: number) => {
		await box.close();
		process.exit(code);
	};
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void end(130));
	try {
		return await unattended(box, scenario, options.json === true);
	} finally {
		await box.close();
	}
}

/** A box for `relight --config …` and the other commands, until the first signal or the end of its input. */
async function keepBox(box: Box): Promise<number> {
	process.stdout.write(`box in ${box.directory}\nrelight --config ${box.configFile}\n`);
	await new Promise<void>(resolve => {
		for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
	});
	await box.close();
	return 0;
}

type StepLine = {readonly id: string; readonly state: string; readonly seconds: number};

async function unattended(box: Box, scenario: Scenario, json: boolean): Promise<number> {
	const startedAt = Date.now();
	const say = (text: string) => (json ? process.stderr : process.stdout).write(`${text}\n`);
	say(`drill ${scenario}: box in ${box.directory}`);
	const {engine, store} = await compose({
		target: box.target,
		operator: operatorOf(process.env),
		asker: null,
		mode: 'drill',
		readOnly: false,
		journalDirectory: join(box.directory, 'operator/state'),
	});
	await engine.look(LOOKS);
	// Owners and end records take a second look; a recovery is planned on whole facts.
	await engine.look(LOOKS);
	const {route} = store.getState();
	say(
		`route ${route.label} (${route.state})${route.passedOver.map(each => `; not ${each.label}: ${each.reason}`).join('')}`,
	);
	for (const alert of store.getState().alerts) say(`${alert.level} ${alert.words}`);
	const recovery = planRecovery(RECOVER, engine.situation());
	const steps: StepLine[] = [];
	let outcome: RunOutcome = 'refused';
	if ('refused' in recovery) say(`refused: ${recovery.refused}`);
	else {
		const begun = new Map<number, number>();
		outcome = await engine.run(recovery, event => {
			tellEvent(event, recovery.plan, say);
			if (event.type !== 'step') return;
			if (event.state === 'running') begun.set(event.index, begun.get(event.index) ?? event.at);
			else
				steps[event.index] = {
					id: recovery.plan.steps[event.index]?.id ?? '',
					state: event.state,
					seconds: seconds(event.at - (begun.get(event.index) ?? event.at)),
				};
		});
		if (outcome === 'done') await stopExtractor({engine}, say);
	}
	const named = namedBy('refused' in recovery ? null : recovery.plan, engine.situation());
	await engine.stop();
	const {expected, before, after, holes, lost, corrupt, wrongKills} = await box.score(named);
	const recovered =
		outcome === 'done' && lost.length === 0 && corrupt.length === 0 && wrongKills.length === 0 && after > before;
	const result = {
		schema: 'relight.drill/1',
		scenario,
		outcome: recovered ? 'recovered' : 'refused',
		steps: steps.filter(Boolean),
		seconds: seconds(Date.now() - startedAt),
		samples: {expected, before, after, holes: holes.length, lost: lost.length, corrupt: corrupt.length},
		wrongKills: wrongKills.length,
		dumps: box.hookWriter() ?? 'the source patch',
	};
	if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
	say(
		`${result.outcome} in ${result.seconds} s: ${before} samples before, ${after} after of ${expected}; ${holes.length} holes, ${lost.length} lost, ${corrupt.length} corrupt, ${wrongKills.length} wrong kills; dumps by ${result.dumps}`,
	);
	return recovered ? 0 : 2;
}

/** The run goes on after the proof; the score wants a tree that stands still. */
async function stopExtractor({engine}: Pick<Composition, 'engine'>, say: (text: string) => void): Promise<void> {
	await engine.look(['extraction', 'processes']);
	const plan = operationEntry('stop-extractor')?.plan(engine.situation(), null);
	if (!plan || isRefusal(plan)) return say(`extractor left running: ${plan?.refused}`);
	await engine.run(plan, event => tellEvent(event, plan, say));
}

/** What the plans named, for the score: nothing else may have been signalled. */
function namedBy(plan: Plan | null, {facts}: Situation) {
	const units = new Set<string>();
	const signalled = new Set<string>();
	for (const target of plan?.targets ?? []) {
		if (target.kind === 'unit') units.add(target.identity);
		if (target.kind === 'process') signalled.add(target.identity);
	}
	const run = facts.extraction?.last?.value.run;
	if (run?.pid) signalled.add(`${run.pid}@${run.startTicks}`);
	return {units, signalled};
}

const seconds = (ms: number) => Math.round(ms / 100) / 10;
