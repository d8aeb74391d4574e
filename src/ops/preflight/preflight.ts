import type {OperationId, Situation} from '../operations/operation.ts';
import {CARD_CHECKS} from './card-checks.ts';
import {type PreflightCheck, stops} from './check.ts';
import {CONTENT_CHECKS} from './content-checks.ts';
import {FILE_CHECKS} from './file-checks.ts';
import {PLACE_CHECKS} from './place-checks.ts';

export type Checked = {
	readonly id: string;
	readonly says: string;
	readonly state: 'pass' | 'warn' | 'fail' | 'unknown' | 'absent';
	readonly evidence: readonly string[];
	readonly mends: OperationId | null;
	readonly blocks: PreflightCheck['blocks'];
	/** Whether what it found is in the way of that. */
	readonly stops: boolean;
};

/** In the order in which mending one makes the next possible. */
export const PREFLIGHT: readonly PreflightCheck[] = [
	...CARD_CHECKS,
	...CONTENT_CHECKS,
	...FILE_CHECKS,
	...PLACE_CHECKS,
];

const WORST = ['fail', 'unknown', 'warn'] as const;

export function preflight(situation: Situation): readonly Checked[] {
	return PREFLIGHT.map(check => {
		const {id, says, blocks} = check;
		const found = check.finds(situation);
		const worst = WORST.find(level => found?.some(finding => finding.level === level));
		const state = found === null ? 'absent' : (worst ?? 'pass');
		const mends = beyond(check, situation).length > 0 ? null : check.mends;
		const evidence = (found ?? []).map(({words}) => words);
		return {id, says, state, evidence, mends, blocks, stops: (found ?? []).some(stops)};
	});
}

/** The worst of all: what the command says with its exit status. */
export function preflightState(checks: readonly Checked[]): 'pass' | 'warn' | 'fail' | 'unknown' {
	return WORST.find(level => checks.some(({state}) => state === level)) ?? 'pass';
}

export type Standing = {readonly against: readonly string[]; readonly overridden: readonly string[]};

/** What stands against going on, and what would but for a person who said otherwise. */
export function standing(blocks: PreflightCheck['blocks'], situation: Situation): Standing {
	const inTheWay = preflight(situation).filter(check => check.blocks === blocks && check.stops);
	const overrides = new Set(situation.overrides ?? []);
	return {
		against: inTheWay.filter(({id}) => !overrides.has(id)).flatMap(({evidence}) => evidence),
		overridden: inTheWay
			.filter(({id}) => overrides.has(id))
			.map(({id, evidence}) => `overridden (${id}): ${evidence.join('; ')}`),
	};
}

/** What stands against going on and no operation mends: a recovery that would come to it is better not begun. */
export function beyondMending(blocks: PreflightCheck['blocks'], situation: Situation): readonly string[] {
	const overrides = new Set(situation.overrides ?? []);
	return PREFLIGHT.filter(check => check.blocks === blocks && !overrides.has(check.id)).flatMap(check =>
		beyond(check, situation),
	);
}

function beyond({mends, finds, remains}: PreflightCheck, situation: Situation): readonly string[] {
	const found = (mends === null ? finds(situation) : remains?.(situation)) ?? [];
	return found.filter(stops).map(({words}) => words);
}
