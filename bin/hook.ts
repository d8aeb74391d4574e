import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {show} from '../src/ops/command.ts';
import {type LaunchFlags, launchFlags} from '../src/ops/hook/launch-flags.ts';
import lookProgram from '../src/ops/hook/look.py';
import {type HookFacts, hookDirectory, LOOK_LIMIT_MS, lookScript, readLook} from '../src/ops/hook/look.ts';
import {HOOK_FILE, HOOK_SHA256, HOOK_TEXT} from '../src/ops/hook/own.ts';
import {judgeHook} from '../src/ops/hook/verdict.ts';
import {isRefusal} from '../src/ops/operations/operation.ts';
import {restoreFiles} from '../src/ops/operations/restore-files.ts';
import {describe} from '../src/ops/outcome.ts';
import {redact} from '../src/ops/redact.ts';
import type {Target} from '../src/ops/target.ts';
import {terminalAsker} from './ask-on-terminal.ts';
import {compose} from './compose.ts';
import {loadConfiguration, pickTarget, UsageError} from './configuration.ts';
import {configPlaces, operatorOf, stateDirectory, stateTrouble} from './login.ts';
import type {Options} from './relight.ts';
import {showPlan, tellEvent} from './run.ts';

const EXIT = {done: 0, failed: 2, unknown: 3, refused: 4, cancelled: 130} as const;
const VERBS = {status, install, 'print-flags': printFlags};

type Call = {readonly target: Target; readonly directory: string; readonly options: Options};

/** What dumps the hidden states on a host: how it is now, put there, and what a launch has to pass. */
export async function hook([verb, name, ...rest]: readonly string[], options: Options): Promise<number> {
	const act = VERBS[verb as keyof typeof VERBS];
	if (!Object.hasOwn(VERBS, verb ?? '') || rest.length > 0)
		throw new UsageError(`relight hook: ${Object.keys(VERBS).join(', ')} [HOST]`);
	const operator = operatorOf(process.env);
	const places = configPlaces(process.env, operator, options.config, process.cwd());
	const configuration = await loadConfiguration(places, options.config !== undefined);
	const target = pickTarget(configuration, name);
	if (!target.server) throw new UsageError(`relight hook: ${target.name} has no server (server: in relight.yaml)`);
	const directory = options.to ?? hookDirectory(target);
	if (!directory.startsWith('/'))
		throw new UsageError('relight hook: where is relight_hs.py to lie? --to DIRECTORY (on the host), or dump.dir');
	if (options.yes && options['dry-run']) throw new UsageError('relight hook: --dry-run or --yes, not both');
	if (verb !== 'install') return act({target, directory, options});
	const trouble = options.yes ? stateTrouble(stateDirectory(process.env, operator), configuration.targets) : null;
	if (trouble) throw new UsageError(trouble);
	return act({target, directory, options});
}

async function status({target, directory, options}: Call): Promise<number> {
	const seen = await look(target, directory);
	if ('why' in seen) return unknown(target, seen.why, options);
	const {way, findings} = judgeHook(target, seen, HOOK_SHA256);
	if (options.json) {
		print(
			JSON.stringify({schema: 'relight.hook/1', host: target.name, state: 'ok', at: now(), way, findings, facts: seen}),
		);
	} else {
		print(`${target.name}: a launch now would dump through ${way === 'none' ? 'nothing' : `the ${way}`}`);
		for (const {level, words} of findings) print(`  ${level.padEnd(8)} ${words}`);
	}
	const worst = findings.some(each => each.level === 'critical')
		? 2
		: findings.some(each => each.level === 'warning')
			? 1
			: 0;
	return worst;
}

async function printFlags({target, directory, options}: Call): Promise<number> {
	const seen = await look(target, directory);
	if ('why' in seen) return unknown(target, seen.why, options);
	const importable = seen.hook.importable?.path;
	const place = options.to ?? importable?.slice(0, importable.lastIndexOf('/')) ?? directory;
	const flags = launchFlags(target, seen, {directory: place, staged: options.staged ?? false});
	if (options.json)
		print(JSON.stringify({schema: 'relight.hook/1', host: target.name, state: 'ok', at: now(), ...flags}));
	else showFlags(flags);
	return 0;
}

/** Flags on stdout, one a line, ready for a shell; what is to know about them on stderr. */
function showFlags({env, args, notes}: LaunchFlags): void {
	for (const [name, value] of env) print(show([`${name}=${value}`]));
	for (const words of args) print(show(words));
	for (const note of notes) process.stderr.write(`note: ${note}\n`);
}

/** The same plan, way and proof as any restored file: its one file is the module that this relight carries. */
async function install({target, directory, options}: Call): Promise<number> {
	const operator = operatorOf(process.env);
	const state = stateDirectory(process.env, operator);
	const source = join(state, 'hook', `${HOOK_SHA256.slice(0, 16)}-${HOOK_FILE}`);
	const file = {source, destination: join(directory, HOOK_FILE), sha256: HOOK_SHA256, mode: '644'};
	const only: Target = {...target, extraction: null, files: [file]};
	const {engine} = await compose({
		target: only,
		operator,
		asker: terminalAsker(),
		mode: 'live',
		readOnly: false,
		journalDirectory: options.yes ? state : null,
	});
	process.once('SIGINT', () => engine.abort());
	process.once('SIGTERM', () => engine.abort());
	const say = (text: string) => (options.json ? process.stderr : process.stdout).write(`${text}\n`);
	const finish = async (outcome: string, words: string, steps: readonly object[], code: number) => {
		const result = {
			schema: 'relight.hook/1',
			host: target.name,
			file: file.destination,
			sha256: HOOK_SHA256,
			outcome,
			words,
			steps,
		};
		if (options.json) print(JSON.stringify(result));
		else say(`${outcome}: ${words}`);
		await engine.stop();
		return code;
	};
	await engine.host.settle();
	await engine.look(['files']);
	const {facts} = engine.situation();
	const found = facts.files?.last?.value.files.find(each => each.path === file.destination);
	if (found?.state === 'present' && !facts.files?.failing)
		return finish('done', `${file.destination} is in place`, [], 0);
	const plan = restoreFiles.plan({}, engine.situation());
	if (isRefusal(plan)) return finish('refused', plan.refused, [], facts.files?.failing ? 3 : 4);
	showPlan(plan, say);
	const steps = plan.steps.map(step => ({says: step.says, command: step.kind === 'wait' ? null : redact(step.script)}));
	if (!options.yes) return finish('dry-run', 'nothing was sent; --yes sends it', steps, 0);
	mkdirSync(join(state, 'hook'), {recursive: true, mode: 0o700});
	writeFileSync(source, HOOK_TEXT);
	let last = plan.title;
	const outcome = await engine.run(plan, event => {
		tellEvent(event, plan, say);
		if (event.type === 'ended') last = event.words;
	});
	return finish(outcome, last, steps, EXIT[outcome]);
}

/** Asks the server's own Python, with the environment that a launch would give it. */
async function look(target: Target, directory: string): Promise<HookFacts | {readonly why: string}> {
	const script = lookScript(target, directory);
	if (script === null) return {why: 'no server is configured'};
	const {engine} = await compose({
		target,
		operator: operatorOf(process.env),
		asker: terminalAsker(),
		mode: 'live',
		readOnly: true,
		journalDirectory: null,
	});
	try {
		await engine.host.settle();
		const answer = await engine.host.send(script, Buffer.from(lookProgram), LOOK_LIMIT_MS);
		if (!answer.ok) return {why: describe(answer.failure)};
		const {status: code, stdout, stderr} = answer.value;
		const seen = readLook(target.server?.python ?? 'python', code, `${stdout}\n${stderr}`);
		return seen.state === 'seen' ? seen.facts : {why: seen.why};
	} finally {
		await engine.stop();
	}
}

function unknown(target: Target, why: string, options: Options): number {
	if (options.json)
		print(JSON.stringify({schema: 'relight.hook/1', host: target.name, state: 'unknown', at: now(), why}));
	else process.stderr.write(`${target.name}: unknown: ${why}\n`);
	return 3;
}

const now = (): string => new Date().toISOString();

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}
