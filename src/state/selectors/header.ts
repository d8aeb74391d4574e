import type {Facts} from '../../ops/facts.ts';
import {othersLock} from '../others-lock.ts';
import type {Alert, ConsoleState, RouteStatus, Session} from '../state.ts';
import {derive} from './derive.ts';

/** One line: where am I, may I act, how fresh is it, is it on fire. The second line: the worst open alerts in words. */
export type HeaderModel = {
	readonly host: string;
	readonly drill: boolean;
	readonly route: {
		readonly state: RouteStatus['state'];
		readonly label: string;
		readonly forMs: number;
		readonly passedOver: {readonly label: string; readonly reason: string; readonly agoMs: number} | null;
	};
	readonly readOnly: boolean;
	/** Who else acts here, so that this console must not. */
	readonly acting: string | null;
	readonly dryRun: boolean;
	readonly frozenMs: number | null;
	readonly recording: Session['recording'];
	readonly nowMs: number;
	/** Age of the newest answer of any probe; null before the first. */
	readonly ageMs: number | null;
	readonly failing: number;
	readonly running: string | null;
	/** A recovery stands still until a person has chosen. */
	readonly waits: boolean;
	readonly configTrouble: string | null;
};

export const selectHeader: (state: ConsoleState) => HeaderModel = derive(
	[
		state => state.target.name,
		state => state.session,
		state => state.route,
		state => state.facts,
		state => state.nowMs,
		state => state.view.frozenAt,
		state => state.operation,
	],
	(host, session, route, facts, nowMs, frozenAt, operation) => ({
		host,
		drill: session.mode === 'drill',
		route: routeOf(route, nowMs),
		readOnly: session.readOnly,
		acting: actingElsewhere(othersLock({facts, session})),
		dryRun: session.dryRun,
		frozenMs: frozenAt === null ? null : Math.max(0, nowMs - frozenAt),
		recording: session.recording,
		nowMs,
		ageMs: newest(facts, nowMs),
		failing: Object.values(facts).filter(reading => reading?.failing).length,
		running: operation.phase === 'running' ? operation.plan.title : null,
		waits: operation.phase === 'running' && operation.held !== undefined,
		configTrouble: session.configTrouble,
	}),
);

function actingElsewhere(held: ReturnType<typeof othersLock>): string | null {
	if (!held) return null;
	return held.actor ? `${held.actor.operator}@${held.actor.from}: ${held.actor.operation}` : 'somebody';
}

function routeOf(route: RouteStatus, nowMs: number): HeaderModel['route'] {
	const first = route.passedOver[0] ?? null;
	return {
		state: route.state,
		label: route.label,
		forMs: Math.max(0, nowMs - route.since),
		passedOver: first ? {label: first.label, reason: first.reason, agoMs: Math.max(0, nowMs - first.at)} : null,
	};
}

function newest(facts: Facts, nowMs: number): number | null {
	const at = Object.values(facts).reduce((latest, reading) => Math.max(latest, reading?.last?.at ?? 0), 0);
	return at === 0 ? null : Math.max(0, nowMs - at);
}

export type AlertRow = Alert & {readonly forMs: number};

export type AlertsModel = {
	readonly rows: readonly AlertRow[];
	readonly critical: number;
	readonly warning: number;
	readonly unacknowledged: number;
};

const WORST: readonly Alert['level'][] = ['critical', 'warning', 'info'];

/** Worst first, then what nobody has seen yet, then the newest. */
export const selectAlerts: (state: ConsoleState) => AlertsModel = derive(
	[state => state.alerts, state => state.nowMs],
	(alerts, nowMs) => ({
		rows: alerts
			.toSorted(
				(a, b) =>
					WORST.indexOf(a.level) - WORST.indexOf(b.level) ||
					Number(a.acknowledged) - Number(b.acknowledged) ||
					b.since - a.since,
			)
			.map(alert => ({...alert, forMs: Math.max(0, nowMs - alert.since)})),
		critical: alerts.filter(alert => alert.level === 'critical').length,
		warning: alerts.filter(alert => alert.level === 'warning').length,
		unacknowledged: alerts.filter(alert => !alert.acknowledged).length,
	}),
);
