import {bad, Complaint, good, type Outcome, ParseError} from '../outcome.ts';
import type {Answer, LaneName, Probe, ProbeContext} from './probe.ts';

/** Sends a script down a lane of the host that is asked. */
export type Ask = (
	lane: LaneName,
	script: string,
	limits: {readonly limitMs: number; readonly capBytes: number},
) => Promise<Outcome<Answer>>;

/**
 * One look with the probe's script for this context: answer, value. Failures of the way come back as they are; text that
 * does not fit is `unparseable`, a tool that says what is wrong is a `complaint`. All else is a bug and throws.
 */
export async function observe<T>(
	probe: Probe<T>,
	script: string,
	context: ProbeContext<T>,
	ask: Ask,
): Promise<Outcome<T>> {
	const answer = await ask(probe.lane, script, {limitMs: probe.limitMs, capBytes: probe.capBytes});
	if (!answer.ok) return answer;
	try {
		return good(probe.parse(answer.value, context));
	} catch (error) {
		if (error instanceof ParseError) return bad({kind: 'unparseable', tool: error.tool, line: error.line});
		if (error instanceof Complaint)
			return bad({kind: 'complaint', tool: error.tool, says: error.says, advice: error.advice});
		throw error;
	}
}
