import type {ProcessRow} from '../../state/selectors/process-rows.ts';
import {type ProcessPaneModel, selectProcesses} from '../../state/selectors/processes.ts';
import {bytesShort, count, duration, gib} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {Region} from '../parts/region.tsx';
import {type Column, tableBody} from '../parts/table.ts';
import {emptyBody, faceRow, paneTitle} from '../parts/title.ts';
import {type Row, type Span, span} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

// biome-ignore format: a table reads by its rows
const COLUMNS: readonly Column<ProcessRow>[] = [
	{title: 'PID', width: 7, align: 'right', keep: 1, cell: row => span(String(row.pid), row.level)},
	{title: 'ST', width: 2, keep: 1, cell: row => span(row.state, row.level)},
	{title: 'STUCK', width: 6, align: 'right', keep: 4, cell: row => span(row.stuckMs === null ? '' : duration(row.stuckMs), row.level)},
	{title: 'WAITS IN', width: 14, stretch: 8, keep: 8, cell: row => span(row.waitChannel ?? '', row.stuck ? 'bad' : 'dim')},
	{title: 'CPU%', width: 5, align: 'right', keep: 3, cell: row => span(row.cpuFraction === null ? '-' : (row.cpuFraction * 100).toFixed(row.cpuFraction >= 10 ? 0 : 1))},
	{title: 'RSS', width: 7, align: 'right', keep: 6, cell: row => span(bytesShort(row.residentBytes))},
	{title: 'GPU', width: 3, keep: 2, cell: row => span(row.cards)},
	{title: 'GPU GiB', width: 7, align: 'right', keep: 2, cell: gpuMemory},
	{title: 'OWNER', width: 20, stretch: 8, keep: 1, cell: row => span(row.owner.replace(/\.service$/, ''), row.holder ? 'plain' : 'dim')},
	{title: 'COMMAND', width: 18, grow: true, keep: 1, cell: command},
];

export function ProcessesPane(props: PaneProps) {
	return <Region place={props.place} rows={processPaneRows(useConsole(selectProcesses), frameOf(props))} />;
}

export function processPaneRows(model: ProcessPaneModel, frame: PaneFrame): readonly Row[] {
	const words = model.face.kind === 'unheard' ? [] : titleWords(model);
	const title = paneTitle('processes', frame.focused, words, faceRow(model.face), frame.width);
	return paneRows(frame, title, height => {
		if (model.rows.length === 0) {
			return emptyBody(
				model.face,
				model.filter ? `no process matches ${model.filter} (Esc clears)` : 'no process is listed',
			);
		}
		return tableBody(COLUMNS, model.rows, frame, height);
	});
}

function titleWords(model: ProcessPaneModel): Row {
	const words: Span[] = [span(`${model.holders} hold GPUs`, model.holders > 0 ? 'plain' : 'dim')];
	if (model.stuck > 0) words.push(span(`  ${model.stuck} stuck`, 'bad'));
	words.push(span(`  of ${count(model.total)}`, 'dim'));
	if (model.filter) words.push(span(`  filter ${model.filter} (${count(model.rows.length)})`, 'accent'));
	if (!model.complete) words.push(span('  own processes only', 'warn'));
	if (model.sort !== 'holders' || model.inverted)
		words.push(span(`  sort ${model.sort}${model.inverted ? ' inverted' : ''}`, 'dim'));
	if (!model.tree) words.push(span('  flat', 'dim'));
	return words;
}

/** A parent without memory of its own shows the sum of what is below it, dim. */
function gpuMemory(row: ProcessRow): Span {
	if (row.gpuBytes !== null) return span(gib(row.gpuBytes));
	return row.gpuBytesBelow === null ? span(row.holder ? '?' : '') : span(gib(row.gpuBytesBelow), 'dim');
}

function command(row: ProcessRow): Row {
	const branch = row.depth === 0 ? '' : `${'  '.repeat(row.depth - 1)}${row.lastChild ? '└─' : '├─'} `;
	const pending: Span[] = row.killPending ? [span('KILL pending  ', 'warn')] : [];
	return [span(branch, 'dim'), ...pending, span(row.command, row.state === 'Z' ? 'dim' : 'plain')];
}
