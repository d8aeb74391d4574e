import {ALERT_RULES, type Seen} from './alert-rules.ts';
import type {Alert} from './state.ts';

const CLEAR_MS = 3_000;

/** Between two judgements: when each subject was first and last seen. */
export type AlertMemory = ReadonlyMap<string, {readonly since: number; readonly seenAt: number; readonly alert: Alert}>;

export function judgeAlerts(
	state: Seen,
	memory: AlertMemory,
	acknowledged: ReadonlySet<string>,
	rules = ALERT_RULES,
): {alerts: readonly Alert[]; memory: AlertMemory} {
	const next = new Map<string, {since: number; seenAt: number; alert: Alert}>();
	const alerts: Alert[] = [];
	for (const rule of rules) {
		const now = new Map(rule.sees(state).map(each => [`${rule.id}:${each.subject}`, each.words]));
		const before = [...memory]
			.filter(([id, entry]) => id.startsWith(`${rule.id}:`) && state.nowMs - entry.seenAt < CLEAR_MS)
			.map(([id]) => id);
		for (const id of new Set([...now.keys(), ...before])) {
			const known = memory.get(id);
			const since = known?.since ?? state.nowMs;
			const seenAt = now.has(id) ? state.nowMs : (known?.seenAt ?? state.nowMs);
			const {level, pane, remedy} = rule;
			const alert: Alert = {
				id,
				level,
				pane,
				remedy,
				since,
				words: now.get(id) ?? known?.alert.words ?? '',
				acknowledged: acknowledged.has(id),
			};
			next.set(id, {since, seenAt, alert});
			if (state.nowMs - since >= rule.afterMs) alerts.push(alert);
		}
	}
	const rank = {critical: 0, warning: 1, info: 2};
	alerts.sort(
		(one, other) => Number(one.acknowledged) - Number(other.acknowledged) || rank[one.level] - rank[other.level],
	);
	return {alerts, memory: next};
}
