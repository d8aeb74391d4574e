import {type MountPaneModel, type MountRow, selectMounts} from '../../state/selectors/mounts.ts';
import {bytes, bytesOf, duration, percentOf} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {Region} from '../parts/region.tsx';
import {type Column, tableBody} from '../parts/table.ts';
import {emptyBody, faceRow, paneTitle} from '../parts/title.ts';
import {keepEnd} from '../safe.ts';
import {type Row, type Span, span} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

// biome-ignore format: a table reads by its rows
const COLUMNS: readonly Column<MountRow>[] = [
	{title: 'STATE', width: 9, keep: 1, cell: row => span(row.state, row.level)},
	{title: 'PATH', width: 11, stretch: 18, keep: 1, cell: (row, width) => span(keepEnd(row.path, width), row.expected ? 'plain' : 'dim')},
	{title: 'TYPE', width: 6, keep: 5, cell: row => span(row.type, 'dim')},
	{title: 'USED/TOTAL', width: 13, align: 'right', keep: 2, cell: size},
	{title: 'USE', width: 4, align: 'right', keep: 3, cell: row => span(row.totalBytes === null ? '' : percentOf(row.usedFraction), row.level === 'good' ? 'plain' : row.level)},
	{title: 'FREE', width: 9, align: 'right', keep: 6, cell: row => span(row.availableBytes === null ? '' : bytes(row.availableBytes))},
	{title: 'NOTE', width: 8, grow: true, keep: 4, cell: row => span(row.notes, row.level === 'good' ? 'dim' : row.level)},
];

export function MountsPane(props: PaneProps) {
	return <Region place={props.place} rows={mountPaneRows(useConsole(selectMounts), frameOf(props))} />;
}

export function mountPaneRows(model: MountPaneModel, frame: PaneFrame): readonly Row[] {
	const words: Row = [
		span(`${model.ok} ok`, 'dim'),
		...(model.troubled > 0 ? [span(`  ${model.troubled} in trouble`, 'bad')] : []),
	];
	const title = paneTitle(
		'mounts',
		frame.focused,
		model.rows.length > 0 ? words : [],
		faceRow(model.face),
		frame.width,
	);
	return paneRows(frame, title, height => {
		if (model.rows.length === 0) return emptyBody(model.face, 'no file system but those of the kernel');
		return tableBody(COLUMNS, model.rows, frame, height);
	});
}

function size(row: MountRow): Span {
	if (row.hungMs !== null) return span(`for ${duration(row.hungMs)}`, 'bad');
	return row.totalBytes === null
		? span('?', row.level)
		: span(bytesOf(row.totalBytes - (row.availableBytes ?? 0), row.totalBytes));
}
