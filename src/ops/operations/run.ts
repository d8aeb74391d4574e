import {createHash} from 'node:crypto';
import {type ActResult, act, sendFile} from '../act.ts';
import type {ProbeId} from '../probes/probe.ts';
import type {Host} from '../transports/host.ts';
import type {Plan, RunEvent, RunOutcome, Situation, Step, StepState} from './operation.ts';

export type RunTools = {
	readonly host: Host;
	/** Looks again and resolves when looks that began after the call have ended, well or not. */
	look(probes: readonly ProbeId[]): Promise<void>;
	situation(): Situation;
	emit(event: RunEvent): void;
	/** On disk before it resolves: nothing is done that was not written down first. A failure to write stops the run. */
	intend(words: string, command: string): Promise<void>;
	outcome(words: string, level: 'ok' | 'warning' | 'critical'): Promise<void>;
	readFile(path: string): Promise<Buffer>;
	readonly signal: AbortSignal;
	clock(): number;
	/** Between two looks of a wait. */
	readonly pauseMs: number;
};

/**
 * Runs a plan as it stands, step by step, and stops at the first that fails. An act whose outcome is unknown is never
 * repeated: the next wait step looks, and if the host shows what was wanted, that is what counts.
 */
export async function runPlan(plan: Plan, tools: RunTools): Promise<RunOutcome> {
	let doubt: string | null = null;
	for (const [index, step] of plan.steps.entries()) {
		if (tools.signal.aborted) return end(tools, 'cancelled', 'stopped by the operator before the next step');
		tell(tools, index, 'running', step.says);
		const result = step.kind === 'wait' ? await waitFor(step, index, tools) : await perform(step, index, tools);
		if (result.text) tools.emit({type: 'output', index, text: result.text, at: tools.clock()});
		tell(tools, index, result.state, result.words);
		await tools.outcome(
			`${step.says}: ${result.words}`,
			result.state === 'done' ? 'ok' : result.state === 'unknown' ? 'warning' : 'critical',
		);
		if (result.state === 'failed' && doubt !== null)
			return end(tools, 'unknown', `${result.words}; before it: ${doubt}`);
		if (result.state === 'failed') return end(tools, 'failed', result.words);
		if (result.state === 'skipped') return end(tools, 'cancelled', result.words);
		if (result.state === 'unknown') doubt = result.words;
		else if (step.kind === 'wait' && !step.grace) doubt = null;
	}
	return doubt === null ? end(tools, 'done', lastWords(plan)) : end(tools, 'unknown', doubt);
}

const TELL_EVERY_MS = 1_000;

type StepResult = {readonly state: StepState; readonly words: string; readonly text?: string};

async function perform(
	step: Extract<Step, {kind: 'run' | 'send'}>,
	index: number,
	tools: RunTools,
): Promise<StepResult> {
	try {
		await tools.intend(step.says, step.script);
	} catch (error) {
		return {state: 'failed', words: `not done, since it could not be written down first: ${(error as Error).message}`};
	}
	if (step.kind === 'run' && step.program !== undefined)
		return read(await sendFile(tools.host, step.script, Buffer.from(step.program), step.limitMs));
	if (step.kind === 'run') return read(await act(tools.host, step.script, step.limitMs));
	let content: Buffer;
	try {
		content = await tools.readFile(step.source);
	} catch (error) {
		return {state: 'failed', words: `cannot read ${step.source}: ${(error as Error).message}`};
	}
	const sum = createHash('sha256').update(content).digest('hex');
	if (step.sha256 && sum !== step.sha256)
		return {state: 'failed', words: `${step.source} is not the file the configuration names (sha256 ${sum})`};
	const sending = {pieceBytes: step.pieceBytes, onSent: underway(content.length, index, tools)};
	const result = await sendFile(tools.host, step.script, content, step.limitMs, sending);
	if (result.kind === 'ok' && !result.text.includes(sum))
		return {state: 'failed', words: `what arrived is not what was sent (${result.text})`};
	return read(result.kind === 'ok' ? {kind: 'ok', text: `${content.length} bytes, sha256 ${sum}`} : result);
}

/** In tenths, and no more than one a second: small files go without. */
function underway(bytes: number, index: number, tools: RunTools): (sent: number) => void {
	let toldAt = tools.clock();
	let told = 0;
	return sent => {
		const tenths = Math.floor((10 * sent) / bytes);
		const all = sent === bytes;
		if (all ? told === 0 : tenths <= told || tools.clock() - toldAt < TELL_EVERY_MS) return;
		told = tenths;
		toldAt = tools.clock();
		const words = all ? 'sent; the host checks it' : `${tenths}0 % of ${(bytes / 1e6).toFixed(1)} MB sent`;
		tell(tools, index, 'running', words);
	};
}

function read(result: ActResult): StepResult {
	if (result.kind === 'ok') return {state: 'done', words: result.text.split('\n').pop() || 'done', text: result.text};
	if (result.kind === 'failed') return {state: 'failed', words: result.words, text: result.text};
	return {state: 'unknown', words: `outcome unknown: ${result.words}`};
}

async function waitFor(step: Extract<Step, {kind: 'wait'}>, index: number, tools: RunTools): Promise<StepResult> {
	const since = tools.clock();
	let said = '';
	for (;;) {
		await tools.look(step.looks);
		const verdict = step.until(tools.situation(), since);
		if (verdict.state === 'met') return {state: 'done', words: verdict.words};
		if (verdict.state === 'failed') return {state: 'failed', words: verdict.words};
		if (verdict.words !== said) tell(tools, index, 'running', verdict.words);
		said = verdict.words;
		if (tools.signal.aborted) return {state: 'skipped', words: `no longer waited for; last seen: ${said}`};
		if (tools.clock() - since > step.limitMs) {
			if (step.grace) return {state: 'done', words: `went on after ${step.limitMs / 1_000} s: ${said}`};
			return {state: 'failed', words: `not so after ${Math.round(step.limitMs / 1_000)} s: ${said}`};
		}
		await pause(tools);
	}
}

function pause({pauseMs, signal}: RunTools): Promise<void> {
	return new Promise(resolve => {
		const timer = setTimeout(done, pauseMs);
		function done() {
			clearTimeout(timer);
			signal.removeEventListener('abort', done);
			resolve();
		}
		signal.addEventListener('abort', done, {once: true});
	});
}

function tell(tools: RunTools, index: number, state: StepState, words: string) {
	tools.emit({type: 'step', index, state, words, at: tools.clock()});
}

async function end(tools: RunTools, outcome: RunOutcome, words: string): Promise<RunOutcome> {
	await tools.outcome(words, outcome === 'done' ? 'ok' : outcome === 'failed' ? 'critical' : 'warning');
	tools.emit({type: 'ended', outcome, words, at: tools.clock()});
	return outcome;
}

const lastWords = (plan: Plan): string => `${plan.title}: done, and seen to be so`;
