import {type AlertsModel, type HeaderModel, selectAlerts, selectHeader} from '../../state/selectors/header.ts';
import {age, clock, duration} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {type Place, Region} from '../parts/region.tsx';
import {clean, truncate} from '../safe.ts';
import {fitRow, type Row, rowWidth, type Span, span} from '../theme.ts';

export function Header({place}: {readonly place: Place}) {
	return <Region place={place} rows={[headerRow(useConsole(selectHeader), useConsole(selectAlerts), place.width)]} />;
}

export function AlertLine({place}: {readonly place: Place}) {
	return <Region place={place} rows={[alertRow(useConsole(selectAlerts), place.width)]} />;
}

/** Parts in the order of the line; `keep` 1 stays longest. */
type Part = {readonly keep: number; readonly row: Row};

export function headerRow(model: HeaderModel, alerts: AlertsModel, width: number): Row {
	const {route} = model;
	const left: Part[] = [
		{keep: 9, row: [span(' relight ', 'dim')]},
		{keep: 1, row: [span(` ${model.host} `, 'title')]},
		...(model.drill ? [{keep: 1, row: [span(' DRILL ', 'inverse')]}] : []),
		{keep: 1, row: [model.readOnly ? span(' RO', 'good') : span(' RW', 'warn')]},
		...(model.acting === null ? [] : [{keep: 2, row: [span(`  ACTS ${clean(model.acting)}`, 'warn')]}]),
		...(model.dryRun ? [{keep: 1, row: [span('  DRY-RUN', 'warn')]}] : []),
		...(model.frozenMs === null
			? []
			: [{keep: 1, row: [span('  '), span(` FROZEN ${duration(model.frozenMs)} `, 'inverse')]}]),
		...(model.recording === 'failing' ? [{keep: 1, row: [span('  REC!', 'bad')]}] : []),
		{keep: 2, row: routeRow(route)},
		...(route.passedOver
			? [
					{
						keep: 6,
						row: [
							span(
								` (not ${route.passedOver.label}: ${route.passedOver.reason}, ${duration(route.passedOver.agoMs)} ago)`,
								'dim',
							),
						],
					},
				]
			: []),
		...(model.waits ? [{keep: 1, row: [span('  WAITS', 'warn')]}] : []),
		...(model.running ? [{keep: 5, row: [span('  runs ', 'accent'), span(model.running)]}] : []),
		...(model.configTrouble
			? [{keep: 7, row: [span(`  CONFIG: ${truncate(clean(model.configTrouble), 60)}`, 'warn')]}]
			: []),
		...(model.recording === 'ok' ? [{keep: 8, row: [span('  rec', 'dim')]}] : []),
	];
	const tone = model.ageMs === null || model.ageMs > 30_000 ? 'bad' : model.ageMs > 10_000 ? 'warn' : 'plain';
	const right: Part[] = [
		...(model.failing > 0 ? [{keep: 4, row: [span(`  ${model.failing} failing`, 'warn')]}] : []),
		{keep: 3, row: [span(`  ${clock(model.nowMs)}`)]},
		{keep: 1, row: [span(model.ageMs === null ? '  no answer yet' : `  age ${age(model.ageMs)}`, tone)]},
		{keep: 3, row: countRow(alerts)},
		{keep: 1, row: [span(' ')]},
	];
	return justify(left, right, width);
}

function routeRow(route: HeaderModel['route']): Row {
	if (route.state === 'up') return [span(`  via ${route.label}`)];
	if (route.state === 'connecting') return [span(`  connecting by ${route.label} ${duration(route.forMs)}`, 'warn')];
	return [span(`  NO ROUTE for ${duration(route.forMs)}, last ${route.label}`, 'bad')];
}

function countRow(alerts: AlertsModel): Row {
	if (alerts.critical > 0) return [span('  '), span(`!${alerts.critical} CRIT`, 'bad')];
	return alerts.warning > 0 ? [span('  '), span(`!${alerts.warning} WARN`, 'warn')] : [];
}

/** Leaves out what matters least until both sides fit; a part that is long is cut rather than left out when it matters. */
function justify(left: readonly Part[], right: readonly Part[], width: number): Row {
	const all = [...left, ...right].toSorted((a, b) => a.keep - b.keep);
	const shown = new Set<Part>();
	let room = width;
	for (const part of all) {
		const wide = rowWidth(part.row);
		if (wide > room && part.keep > 2) continue;
		shown.add(part);
		room -= wide;
	}
	const rowOf = (parts: readonly Part[]): Span[] => parts.filter(part => shown.has(part)).flatMap(part => part.row);
	const end = rowOf(right);
	return [...fitRow(rowOf(left), Math.max(0, width - rowWidth(end))), ...end];
}

/** The worst open alerts in words, as many as fit; nothing when nothing is wrong. */
export function alertRow(alerts: AlertsModel, width: number): Row {
	const open = alerts.rows.filter(row => row.level !== 'info');
	if (open.length === 0) return [];
	const worst = open[0]?.level === 'critical' ? `!${alerts.critical} CRIT` : `!${alerts.warning} WARN`;
	const key = open.some(row => !row.acknowledged) ? 'A lists, a acknowledges' : 'A lists';
	const row: Span[] = [span(` ${worst} `, open[0]?.level === 'critical' ? 'bad' : 'warn')];
	for (const [index, alert] of open.entries()) {
		const words = span(
			`${alert.words} (${duration(alert.forMs)})`,
			alert.acknowledged ? 'dim' : alert.level === 'critical' ? 'bad' : 'warn',
		);
		if (index > 0 && rowWidth(row) + rowWidth([words]) + 3 > width) break;
		row.push(span(index > 0 ? ' | ' : ' ', 'dim'), words);
	}
	const room = width - rowWidth(row);
	return room > key.length + 2 ? [...row, span(`${' '.repeat(room - key.length - 1)}${key} `, 'dim')] : row;
}
