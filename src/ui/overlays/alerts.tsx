import {Box, Text} from 'ink';
import {Table} from 'ink-table';
import type {ReactNode} from 'react';
import {type AlertRow, type AlertsModel, selectAlerts} from '../../state/selectors/header.ts';
import type {ConsoleState} from '../../state/state.ts';
import {duration} from '../format.ts';
import {useTheme} from '../hooks/use-console.ts';
import type {Place} from '../parts/region.tsx';
import {windowOn} from '../parts/table.ts';
import {clean, fitText} from '../safe.ts';
import {paint, span, toAscii} from '../theme.ts';
import type {Layer, Screen} from './layer.ts';

/** A table of ink-table's: it changes with an alert, not with every tick. Each row takes two lines, the frame three. */
const LINES_PER_ROW = 2;
const FRAME_LINES = 3;

export function alertsLayer({index}: {readonly index: number}, state: ConsoleState, screen: Screen): Layer {
	const {rows} = selectAlerts(state);
	return {
		title: [span('alerts', 'title')],
		body: rows.length === 0 ? [[span('no alert is open', 'dim')]] : rows.map(row => [span(row.words)]),
		foot: [],
		stands: {by: 'index', at: Math.min(index, Math.max(0, rows.length - 1))},
		width: Math.max(20, screen.width - 6),
	};
}

export function AlertsTable({
	model,
	index,
	place,
}: {
	readonly model: AlertsModel;
	readonly index: number;
	readonly place: Place;
}) {
	const theme = useTheme();
	const room = Math.max(1, Math.floor((place.height - FRAME_LINES) / LINES_PER_ROW));
	const {from, to} = windowOn(model.rows.length, index, room);
	const data = alertCells(model.rows.slice(from, to), index - from, place.width);
	const plain = ({children}: {readonly children?: ReactNode}) => (
		<Text>{theme.ascii ? toAscii(String(children)) : children}</Text>
	);
	const title = ({children}: {readonly children?: ReactNode}) => (
		<Text>{paint([span(String(children), 'title')], theme)}</Text>
	);
	return (
		<Box position="absolute" left={place.left} top={place.top} width={place.width} height={place.height}>
			<Table data={data} skeleton={plain} header={title} cell={plain} />
		</Box>
	);
}

type AlertCells = {' ': string; level: string; since: string; what: string; 'what to do': string};

/** Cells cut to the table's width beforehand: ink-table makes its columns as wide as their content. */
export function alertCells(rows: readonly AlertRow[], selected: number, width: number): AlertCells[] {
	const room = Math.max(16, width - 39);
	const what = Math.ceil(room * 0.6);
	return rows.map((row, at) => ({
		' ': at === selected ? '>' : ' ',
		level: fitText(row.acknowledged ? `${row.level} seen` : row.level, 13),
		since: fitText(duration(row.forMs), 6),
		what: fitText(clean(row.words), what),
		'what to do': fitText(clean(row.remedy), room - what),
	}));
}
