import type {OperationId, Plan, Refusal, Situation, Verdict} from '../operations/operation.ts';
import type {ProbeId} from '../probes/probe.ts';

/**
 * A *runbook* is an ordered list of checks, each with the operation that mends it. How far it has come is derived from
 * what the host shows, never stored. A recovery shows every command before the first one runs; when a check is reached its
 * operation is planned anew, and a command that was not among those shown stops the recovery and asks again.
 */
export type Check = {
	readonly id: string;
	readonly says: string;
	readonly mends: OperationId;
	readonly looks: readonly ProbeId[];
	/** How long it may take to come true by itself when there is nothing to mend: memory comes back late. */
	readonly settleMs: number;
	/** `met`: nothing to do. `pending`: to be mended, `words` says what is wrong. `failed`: cannot be told. */
	holds(situation: Situation): Verdict;
	/** What would be run, as far as it can be told now. Several where several things are wrong. */
	plans(situation: Situation): readonly (Plan | Refusal)[];
};

export type CheckState = {readonly check: Check; readonly verdict: Verdict};

export const walk = (checks: readonly Check[], situation: Situation): readonly CheckState[] =>
	checks.map(check => ({check, verdict: check.holds(situation)}));

export const nextCheck = (checks: readonly Check[], situation: Situation): CheckState | null =>
	walk(checks, situation).find(({verdict}) => verdict.state !== 'met') ?? null;
