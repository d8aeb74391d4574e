import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {type Composition, compose} from '../../bin/compose.ts';
import {operatorOf} from '../../bin/login.ts';
import {LOOKS} from '../../bin/looks.ts';
import {readConfig} from '../../src/ops/config/config.ts';
import {operationEntry} from '../../src/ops/operations/catalogue.ts';
import {isRefusal, type OperationId, type Plan, type RunOutcome} from '../../src/ops/operations/operation.ts';
import type {Target} from '../../src/ops/target.ts';
import {until} from '../support/until.ts';
import {childrenOf, send, statOf} from './sshd.ts';

/** A host behind `prefix`, as a configuration would say it. `rest`: more lines of that host, in flow style. */
export function hostBehind(prefix: readonly string[], rest = ''): Target {
	const read = readConfig(
		`hosts: {lab: {routes: [{local: true, through: ${JSON.stringify(prefix)}}]${rest}}}\n`,
		'relight.yaml',
	);
	const target = read.ok ? read.targets[0] : undefined;
	if (!target) throw new Error(JSON.stringify(read));
	return target;
}

/** Everything of the console but its screen, connected. The journal lies in a folder of its own below `folder`. */
export async function openOn(target: Target, folder: string): Promise<Composition> {
	const composition = await compose({
		target,
		operator: operatorOf(process.env),
		asker: null,
		mode: 'live',
		readOnly: false,
		journalDirectory: mkdtempSync(join(folder, 'state-')),
	});
	await composition.engine.host.settle();
	return composition;
}

export type Acted = {readonly outcome: RunOutcome; readonly words: string; readonly plan: Plan};

/** Looks, plans and runs as `relight run` does; throws the refusal. `words`: the last ones, and what the host said. */
export async function act({engine}: Composition, id: OperationId, argument: string | null = null): Promise<Acted> {
	await engine.look(LOOKS);
	// What was seen to hold a card is asked about only now.
	await engine.look(['processes', 'services']);
	const plan = operationEntry(id)?.plan(engine.situation(), argument) ?? {refused: 'no such operation'};
	if (isRefusal(plan)) throw new Error(plan.refused);
	let words = '';
	const outcome = await engine.run(plan, event => {
		if (event.type === 'ended') words = `${words}${event.words}`;
		if (event.type === 'output') words = `${words}${event.text}\n`;
	});
	return {outcome, words, plan};
}

export type Contained = {readonly pid: number; close(): Promise<void>};

/** `script` in namespaces of its own (`flags` of unshare), then a long sleep there, whose pid is given as seen from here. */
export async function contained(flags: readonly string[], script: string): Promise<Contained> {
	const argv = [...flags, 'sh', '-ec', `${script}\nexec sleep 600`];
	const outer = spawn('unshare', argv, {stdio: ['ignore', 'ignore', 'pipe'], cwd: tmpdir()});
	let said = '';
	outer.stderr.on('data', chunk => {
		said += chunk;
	});
	const family = (): readonly number[] => [outer.pid as number, ...childrenOf(outer.pid as number)];
	const sleeps = () => family().find(pid => commandOf(pid) === 'sleep 600');
	await until(
		() => sleeps() !== undefined || outer.exitCode !== null,
		15_000,
		() => `the namespace (${said.trim()})`,
	);
	const pid = sleeps();
	if (pid === undefined) throw new Error(said.trim() || 'the namespace ended');
	return {
		pid,
		async close() {
			for (const each of [pid, outer.pid as number]) if (statOf(each)) send(each, 'SIGKILL');
			await until(() => outer.exitCode !== null || outer.signalCode !== null);
		},
	};
}

function commandOf(pid: number): string {
	try {
		return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
	} catch {
		return '';
	}
}
