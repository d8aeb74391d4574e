import {describe, type Failure, type Outcome} from './outcome.ts';
import type {Answer} from './probes/probe.ts';
import type {Host} from './transports/host.ts';
import type {Sending} from './transports/pour.ts';

export type ActResult =
	| {readonly kind: 'ok'; readonly text: string}
	| {readonly kind: 'failed'; readonly words: string; readonly text: string}
	/** The link was lost or the limit passed under it: it may have happened. Look before anything else. */
	| {readonly kind: 'unknown'; readonly words: string};

/** Statuses that say more than "it failed"; none of them is a success and none says that nothing happened. */
const HINTS: Readonly<Record<number, string>> = {
	124: 'its own time limit was reached',
	126: 'not executable there',
	127: 'not found there',
	134: 'aborted',
	137: 'killed; often out of memory: see the kernel log',
	139: 'segmentation fault',
	143: 'ended by TERM',
	255: 'or the inner hop failed, not the command: look before repeating',
};

const CAP_BYTES = 256 * 1024;

/** One act on a host, as shown in the plan, byte for byte. Never repeated here. */
export async function act(host: Host, script: string, limitMs: number): Promise<ActResult> {
	return judge(await host.ask('act', script, {limitMs, capBytes: CAP_BYTES}));
}

export async function sendFile(
	host: Host,
	script: string,
	content: Buffer,
	limitMs: number,
	sending?: Sending,
): Promise<ActResult> {
	return judge(await host.send(script, content, limitMs, sending));
}

export function judge(outcome: Outcome<Answer>): ActResult {
	if (!outcome.ok) return fromFailure(outcome.failure);
	const {status, stdout, stderr} = outcome.value;
	const text = [stdout.trimEnd(), stderr.trimEnd()].filter(Boolean).join('\n');
	if (status === 0) return {kind: 'ok', text};
	const last = text.split('\n').pop() ?? '';
	const hint = HINTS[status];
	return {kind: 'failed', words: `exit ${status}${last ? `: ${last}` : ''}${hint ? ` (${hint})` : ''}`, text};
}

/** `unreachable` before the channel opened means nothing was sent; everything later may have run. */
function fromFailure(failure: Failure): ActResult {
	const words = describe(failure);
	const nothingSent = ['unreachable', 'denied', 'asks', 'cancelled'].includes(failure.kind);
	return nothingSent ? {kind: 'failed', words, text: ''} : {kind: 'unknown', words};
}
