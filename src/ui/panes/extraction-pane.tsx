import {type ExtractionGroup, type ExtractionPaneModel, selectExtraction} from '../../state/selectors/extraction.ts';
import {age, byteRate, bytes, count, duration, percentFine, range, rate, some} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {bar, cell} from '../parts/meter.ts';
import {Region} from '../parts/region.tsx';
import {type Column, choose, tableRow, windowOn} from '../parts/table.ts';
import {emptyBody, faceRow, paneTitle} from '../parts/title.ts';
import {type Row, rowWidth, type Span, span} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

export function ExtractionPane(props: PaneProps) {
	return <Region place={props.place} rows={extractionPaneRows(useConsole(selectExtraction), frameOf(props))} />;
}

export function extractionPaneRows(model: ExtractionPaneModel, frame: PaneFrame): readonly Row[] {
	const words = model.present === null && model.run === null ? [] : [span(model.state, model.level)];
	const title = paneTitle('extraction', frame.focused, words, faceRow(model.face), frame.width);
	return paneRows(frame, title, height => {
		if (!model.configured && model.present === null)
			return emptyBody({kind: 'fresh', ageMs: 0}, 'no extraction is configured for this host');
		if (model.present === null && model.run === null) return emptyBody(model.face, 'no output tree and no run');
		const lines = [
			progress(model, frame.width),
			rates(model),
			sample(model),
			holes(model),
			space(model),
			server(model),
		].map(line => [span(' '), ...line]);
		const room = height - lines.length;
		if (room <= 0) return lines.slice(0, height);
		return [...lines, ...groups(model, frame, room)];
	});
}

function progress(model: ExtractionPaneModel, width: number): Row {
	const words: Row = [
		span(` ${count(model.present)}/${count(model.expected)} `),
		span(percentFine(model.fraction), 'title'),
	];
	return [
		...bar(model.fraction, Math.max(8, width - rowWidth(words) - 3), model.level === 'bad' ? 'warn' : 'good'),
		...words,
	];
}

function rates({run, state}: ExtractionPaneModel): Row {
	if (!run) return [span('rate -   ETA -   no run reports', 'dim')];
	const eta = run.etaMs && state !== 'stalled' ? range(run.etaMs.low, run.etaMs.high) : `- (${state})`;
	const speed = [
		rate(run.samplesPerSecond),
		run.tokensPerSecond === null ? '' : rate(run.tokensPerSecond, 'tok'),
		run.bytesPerSecond === null ? '' : byteRate(run.bytesPerSecond),
	];
	return [span(`rate ${speed.filter(Boolean).join('  ')}   `), span(`ETA ${eta}`, run.etaMs ? 'title' : 'plain')];
}

function sample({lastSampleMs, run, level}: ExtractionPaneModel): Row {
	const tone = level === 'bad' ? 'bad' : 'plain';
	const words: Span[] = [span(`last sample ${lastSampleMs === null ? '-' : `${age(lastSampleMs)} ago`}`, tone)];
	if (!run) return words;
	const alive = run.pid === null ? '' : run.alive === false ? `  pid ${run.pid} gone` : `  pid ${run.pid}`;
	words.push(
		span(`   this run ${count(run.extracted)} new${run.skipped === null ? '' : `, ${count(run.skipped)} skipped`}`),
	);
	words.push(span(`, ${some(run.errors, 'error')}`, run.errors > 0 ? 'bad' : 'plain'));
	return [...words, span(`${alive}  (${run.source})`, 'dim')];
}

function holes(model: ExtractionPaneModel): Row {
	const words: Span[] = [span(some(model.holes, 'hole'), model.holes > 0 ? 'warn' : 'dim')];
	if (model.firstHole) words.push(span(` at ${model.firstHole}`, 'dim'));
	words.push(span('   '), span(some(model.suspects, 'suspect'), model.suspects > 0 ? 'bad' : 'dim'));
	if (model.firstSuspect) words.push(span(` ${model.firstSuspect}`, 'dim'));
	if (model.quarantined > 0) words.push(span(`   ${count(model.quarantined)} quarantined`, 'dim'));
	if (model.temporaries > 0) words.push(span(`   ${count(model.temporaries)} unfinished`, 'dim'));
	return words;
}

function space(model: ExtractionPaneModel): Row {
	if (model.bytes === null) return [span('disk -', 'dim')];
	const short = model.neededBytes !== null && model.freeBytes !== null && model.neededBytes > model.freeBytes;
	return [
		span(`disk ${bytes(model.bytes)}  ${bytes(model.bytesPerSample)} each  needs ${bytes(model.neededBytes)}, `),
		span(
			model.freeBytes === null ? 'free unknown' : `${bytes(model.freeBytes)} free${short ? ': NOT ENOUGH' : ''}`,
			short ? 'bad' : 'plain',
		),
	];
}

function server(model: ExtractionPaneModel): Row {
	const last = model.server?.lastMs === undefined ? '' : ` · last time ${duration(model.server.lastMs)}`;
	const words: Span[] = model.server
		? [span('server '), span(model.server.words, model.server.level), span(last, 'dim')]
		: [span('server not heard', 'dim')];
	if (model.script && model.script !== 'not configured')
		words.push(span('   script '), span(model.script, model.script === 'gone' ? 'bad' : 'good'));
	if (model.dumps)
		words.push(
			span(
				`   ${some(model.dumps.count, 'dump')} ${bytes(model.dumps.bytes)}`,
				model.dumps.count > 0 ? 'plain' : 'dim',
			),
		);
	return words;
}

// biome-ignore format: a table reads by its rows
const GROUP_COLUMNS: readonly Column<ExtractionGroup>[] = [
	{title: 'GROUP', width: 14, stretch: 6, keep: 1, cell: group => span(group.name)},
	{title: 'STATE', width: 9, keep: 2, cell: group => span(group.state, group.state === 'holes' ? 'warn' : group.state === 'full' ? 'good' : 'plain')},
	{title: 'FILES', width: 11, align: 'right', keep: 1, cell: group => span(`${count(group.present)}/${count(group.expected)}`)},
	{title: '', width: 10, grow: true, keep: 3, cell: (group, width) => bar(group.expected > 0 ? group.present / group.expected : null, width, 'good')},
	{title: 'SIZE', width: 9, align: 'right', keep: 4, cell: group => span(bytes(group.bytes))},
	{title: 'NEWEST', width: 8, align: 'right', keep: 5, cell: group => span(duration(group.newestMs))},
];

/** One cell per group where that is all there is room for; else the groups as rows around the selected one. */
function groups(model: ExtractionPaneModel, frame: PaneFrame, room: number): readonly Row[] {
	if (model.groups.length === 0) return [];
	const full = model.groups.filter(group => group.state === 'full').length;
	const strip = model.groups.map(group => cell(group.expected > 0 ? group.present / group.expected : 0)).join('');
	const line: Row = [
		span(' groups ', 'dim'),
		span(strip, 'accent'),
		span(` ${full}/${model.groups.length} full`, 'dim'),
	];
	if (room < 4) return [line];
	const placed = choose(GROUP_COLUMNS, frame.width);
	const {from, to} = windowOn(
		model.groups.length,
		model.groups.findIndex(group => group.selected),
		room - 1,
	);
	return [line, ...model.groups.slice(from, to).map(group => tableRow(placed, group, group.selected, frame.focused))];
}
