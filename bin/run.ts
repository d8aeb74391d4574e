import {OPERATIONS, operationEntry} from '../src/ops/operations/catalogue.ts';
import {isRefusal, type OperationId, type Plan, type RunEvent} from '../src/ops/operations/operation.ts';
import {redact} from '../src/ops/redact.ts';
import {RECOVER} from '../src/ops/runbook/recover.ts';
import {planRecovery} from '../src/ops/runbook/run-recovery.ts';
import {terminalAsker} from './ask-on-terminal.ts';
import {withBuilt} from './built-extractor.ts';
import {compose} from './compose.ts';
import {loadConfiguration, pickTarget, UsageError} from './configuration.ts';
import {configPlaces, operatorOf, stateDirectory, stateTrouble} from './login.ts';
import {CONTENT_LOOKS, LAUNCH_LOOKS, LOOKS} from './looks.ts';
import type {Options} from './relight.ts';

const EXIT = {done: 0, failed: 2, unknown: 3, refused: 4, cancelled: 130} as const;

/** Those that launch: only they wait for what a launch is held against. */
const LAUNCHES: ReadonlySet<OperationId> = new Set(['launch-server', 'recover']);

/** Those that begin what reads large files. */
const RESTS_ON_CONTENTS: ReadonlySet<OperationId> = new Set([...LAUNCHES, 'run-extractor']);

/** One operation without the console. Without --yes it only shows what it would do. */
export async function run([id, name]: readonly string[], options: Options): Promise<number> {
	const entry = id ? operationEntry(id) : undefined;
	if (!entry) throw new UsageError(`relight run: which operation? ${OPERATIONS.map(each => each.id).join(', ')}`);
	if (Boolean(options['dry-run']) === Boolean(options.yes))
		throw new UsageError('relight run: say --dry-run to see the commands or --yes to run them');
	const operator = operatorOf(process.env);
	const configuration = await loadConfiguration(
		configPlaces(process.env, operator, options.config, process.cwd()),
		options.config !== undefined,
	);
	const target = withBuilt(pickTarget(configuration, name));
	const directory = stateDirectory(process.env, operator);
	const trouble = options.yes ? stateTrouble(directory, configuration.targets) : null;
	if (trouble) throw new UsageError(trouble);
	const {engine, store} = await compose({
		target,
		operator,
		asker: terminalAsker(),
		mode: 'live',
		readOnly: false,
		journalDirectory: options.yes ? directory : null,
		earlierJournal: directory,
	});
	const say = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`);
	process.once('SIGINT', () => engine.abort());
	process.once('SIGTERM', () => engine.abort());
	await engine.host.settle();
	if (options['break-lock'] && options.yes) say(await engine.breakLock());
	await engine.look([...LOOKS, ...(RESTS_ON_CONTENTS.has(entry.id) ? CONTENT_LOOKS : [])]);
	await engine.look(['processes', 'services', 'extraction', ...(LAUNCHES.has(entry.id) ? LAUNCH_LOOKS : [])]);
	const situation = {...engine.situation(), overrides: options.override ?? []};
	const plan = entry.plan(situation, options.on ?? null);
	const {route} = store.getState();
	if (route.state !== 'up') {
		const why = route.passedOver.map(({label, reason}) => `${label}: ${reason}`).join('; ');
		return finish({outcome: 'unknown', words: `unreachable: ${why}`, steps: []}, EXIT.unknown);
	}
	if (isRefusal(plan)) return finish({outcome: 'refused', words: plan.refused, steps: []}, 4);
	showPlan(plan, say);
	if (options['dry-run'])
		return finish(
			{
				outcome: 'dry-run',
				words: plan.title,
				steps: plan.steps.map(step => ({
					id: step.id,
					says: step.says,
					command: step.kind === 'wait' ? null : redact(step.script),
				})),
			},
			0,
		);
	const recovery = plan.operation === 'recover' ? planRecovery(RECOVER, situation) : null;
	const steps = plan.steps.map(step => ({id: step.id, state: 'pending', words: ''}));
	let last = '';
	const outcome = await engine.run(recovery && !('refused' in recovery) ? recovery : plan, event => {
		tellEvent(event, plan, say);
		if (event.type === 'step')
			steps[event.index] = {id: plan.steps[event.index]?.id ?? '', state: event.state, words: event.words};
		if (event.type === 'ended') last = event.words;
	});
	return finish({outcome, words: last, steps}, EXIT[outcome]);

	async function finish(result: {outcome: string; words: string; steps: object[]}, code: number): Promise<number> {
		if (options.json)
			process.stdout.write(
				`${JSON.stringify({schema: 'relight.run/1', operation: id, host: target.name, ...result})}\n`,
			);
		else say(`${result.outcome}: ${result.words}`);
		await engine.stop();
		return code;
	}
}

export function showPlan(plan: Plan, say: (text: string) => void): void {
	say(plan.title);
	for (const target of plan.targets) say(`  on   ${target.says}`);
	for (const target of plan.excluded) say(`  not  ${target.says}`);
	for (const warning of plan.warnings) say(`  note ${warning}`);
	for (const step of plan.steps) {
		say(`  ${step.kind === 'wait' ? 'look' : 'do  '} ${step.says}`);
		if (step.kind !== 'wait') for (const line of redact(step.script).split('\n')) say(`         ${line}`);
	}
	if (plan.inverse) say(`  undo ${plan.inverse}`);
}

export function tellEvent(event: RunEvent, plan: Plan, say: (text: string) => void): void {
	if (event.type !== 'step') return;
	const step = plan.steps[event.index];
	say(`${new Date(event.at).toISOString().slice(11, 19)} ${event.state.padEnd(7)} ${step?.id ?? ''}: ${event.words}`);
}
