import {type GpuPaneModel, type GpuRow, selectGpus} from '../../state/selectors/gpus.ts';
import {duration, gib, gibOf, percent} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {bar, spark} from '../parts/meter.ts';
import {Region} from '../parts/region.tsx';
import {type Column, choose, headings, tableRow, windowOn} from '../parts/table.ts';
import {emptyBody, faceRow, paneTitle} from '../parts/title.ts';
import {type Row, type Span, span, type Tone} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

const fraction = (row: GpuRow): number | null =>
	row.usedBytes !== null && row.totalBytes ? row.usedBytes / row.totalBytes : null;

// biome-ignore format: a table reads by its rows
const COLUMNS: readonly Column<GpuRow>[] = [
	{title: '#', width: 2, align: 'right', keep: 1, cell: row => span(row.index === null ? '-' : String(row.index))},
	{title: 'STATE', width: 9, keep: 1, cell: row => span(row.state, row.level)},
	{title: 'FOR', width: 6, keep: 5, cell: row => span(row.idleMs === null ? '' : duration(row.idleMs), row.level)},
	{title: 'UTIL', width: 4, align: 'right', keep: 1, cell: row => span(percent(row.busyPercent))},
	{title: '', width: 8, stretch: 6, keep: 7, cell: (row, width) => bar(row.busyPercent === null ? null : row.busyPercent / 100, width, 'good')},
	{title: '10m', width: 16, stretch: 14, keep: 9, cell: (row, width) => span(spark(row.trend, width), 'accent')},
	{title: 'MEM', width: 4, align: 'right', keep: 2, cell: row => span(percent(memoryPercent(row)), memoryTone(row))},
	{title: 'USED/TOT GiB', width: 12, align: 'right', keep: 2, cell: row => span(gibOf(row.usedBytes, row.totalBytes))},
	{title: '', width: 8, stretch: 8, keep: 7, cell: (row, width) => bar(fraction(row), width, row.level === 'good' ? 'good' : 'plain')},
	{title: 'TEMP', width: 4, align: 'right', keep: 4, cell: temperature},
	{title: 'POWER', width: 8, align: 'right', keep: 6, cell: power},
	{title: 'MHz', width: 5, align: 'right', keep: 10, cell: row => span(row.smClockMhz === null ? '-' : String(row.smClockMhz))},
	{title: 'PCIe', width: 5, align: 'right', keep: 8, cell: pcie},
	{title: 'ERRORS', width: 9, keep: 3, cell: row => troubles(row)},
	{title: 'HELD BY', width: 26, grow: true, keep: 1, cell: row => span(row.heldBy, row.state === 'held idle' || row.state === 'lost' ? row.level : 'plain')},
];

export function GpuPane(props: PaneProps) {
	return <Region place={props.place} rows={gpuPaneRows(useConsole(selectGpus), frameOf(props))} />;
}

/** Everything it shows is in `model`: no store, no clock. */
export function gpuPaneRows(model: GpuPaneModel, frame: PaneFrame): readonly Row[] {
	const title = paneTitle('gpu', frame.focused, [span(model.title)], faceRow(model.face), frame.width);
	return paneRows(frame, title, height => {
		if (model.rows.length === 0) return emptyBody(model.face, 'the driver answers, and there is no card');
		const placed = choose(COLUMNS, frame.width);
		const sums = sumRow(model, placed.length);
		const room = Math.max(1, height - (height > model.rows.length + 1 ? 2 : 1));
		const {from, to} = windowOn(
			model.rows.length,
			model.rows.findIndex(row => row.selected),
			room,
		);
		const cards = model.rows.slice(from, to).map(row => tableRow(placed, row, row.selected, frame.focused));
		return [headings(placed), ...cards, sums];
	});
}

function sumRow({sums}: GpuPaneModel, columns: number): Row {
	const memory = `${gib(sums.usedBytes)}/${gib(sums.totalBytes)} GiB`;
	const held: Span[] = sums.heldIdle > 0 ? [span(`held idle ${sums.heldIdle}/${sums.cards}`, 'bad'), span('  ')] : [];
	const lost: Span[] = sums.lost > 0 ? [span(`lost ${sums.lost}/${sums.cards}`, 'bad'), span('  ')] : [];
	const watts = sums.watts === null || columns < 6 ? '' : `  ${Math.round(sums.watts)} W`;
	return [
		span(` sum ${memory}${watts}  `, 'dim'),
		...lost,
		...held,
		span(`free ${sums.free}/${sums.cards}`, sums.free === sums.cards ? 'good' : 'dim'),
	];
}

function memoryPercent(row: GpuRow): number | null {
	const used = fraction(row);
	return used === null ? null : used * 100;
}

function memoryTone(row: GpuRow): Tone {
	const used = fraction(row) ?? 0;
	if (row.sharedMemory) return 'plain';
	return used >= 0.985 ? 'bad' : used >= 0.96 ? 'warn' : 'plain';
}

/** Against the card's own slowdown point; common sense only where it gives none. */
function temperature(row: GpuRow): Span {
	const celsius = row.temperatureCelsius;
	if (celsius === null) return span('-');
	const slowdown = row.slowdownCelsius ?? 93;
	const tone: Tone = celsius >= slowdown - 3 ? 'bad' : celsius >= slowdown - 10 ? 'warn' : 'plain';
	return span(`${Math.round(celsius)}C`, tone);
}

function power(row: GpuRow): Span {
	if (row.powerWatts === null) return span('-');
	const cap = row.powerCapWatts === null ? '' : `/${Math.round(row.powerCapWatts)}`;
	return span(`${Math.round(row.powerWatts)}${cap}W`);
}

function pcie(row: GpuRow): Span {
	const {generation, width, narrow} = row.pcie;
	if (generation === null && width === null) return span('-');
	return span(`${generation ?? '?'}x${width ?? '?'}`, narrow ? 'warn' : 'plain');
}

/** What is wrong with the card itself, worst first; a narrow link only shows here when its own column is gone. */
function troubles(row: GpuRow): Span {
	const words = [
		...(row.xid === null ? [] : [`xid ${row.xid}`]),
		...(row.eccUncorrected ? [`ecc ${row.eccUncorrected}`] : []),
		...(row.pcie.narrow ? [`x${row.pcie.width} link`] : []),
		...row.throttle,
	];
	if (words.length === 0) return span('-', 'dim');
	return span(words.join(' '), row.xid !== null || (row.eccUncorrected ?? 0) > 0 ? 'bad' : 'warn');
}
