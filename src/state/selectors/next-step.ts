import type {OperationId, Verdict} from '../../ops/operations/operation.ts';
import {RECOVER} from '../../ops/runbook/recover.ts';
import {walk} from '../../ops/runbook/runbook.ts';
import type {ConsoleState} from '../state.ts';
import {derive} from './derive.ts';

/** The runbook as it stands: derived from what the host shows, never stored. */
export type RunbookModel = {
	readonly checks: readonly {
		readonly id: string;
		readonly says: string;
		readonly state: Verdict['state'];
		readonly words: string;
	}[];
	readonly met: number;
	/** The first check that does not hold, and what mends it; null when the box is at work. */
	readonly next: NextStep | null;
};

export type NextStep = {readonly says: string; readonly words: string; readonly operation: OperationId};

export const selectRunbook: (state: ConsoleState) => RunbookModel = derive(
	[state => state.target, state => state.facts, state => state.nowMs, state => state.session.own],
	(target, facts, nowMs, own) => {
		const walked = walk(RECOVER, {target, facts, nowMs, own});
		const first = walked.find(({verdict}) => verdict.state !== 'met');
		return {
			checks: walked.map(({check, verdict}) => ({
				id: check.id,
				says: check.says,
				state: verdict.state,
				words: verdict.words,
			})),
			met: walked.filter(({verdict}) => verdict.state === 'met').length,
			next: first ? {says: first.check.says, words: first.verdict.words, operation: first.check.mends} : null,
		};
	},
);
