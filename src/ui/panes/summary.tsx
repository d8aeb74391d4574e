import {type ExtractionPaneModel, selectExtraction} from '../../state/selectors/extraction.ts';
import {type GpuPaneModel, selectGpus} from '../../state/selectors/gpus.ts';
import {type LogPaneModel, selectLog} from '../../state/selectors/log.ts';
import {type MountPaneModel, selectMounts} from '../../state/selectors/mounts.ts';
import {type OperationsPaneModel, selectOperations} from '../../state/selectors/operations.ts';
import {type ProcessPaneModel, selectProcesses} from '../../state/selectors/processes.ts';
import type {ConsoleState, PaneId} from '../../state/state.ts';
import {age, clock, count, duration, gib, percentFine, range, rate, some} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {operationKeys} from '../keymap/operation-keys.ts';
import {type Place, Region} from '../parts/region.tsx';
import {paneNumber} from '../parts/title.ts';
import {type Row, type Span, span} from '../theme.ts';

/** The panes that have no room, one line each. */
export function Summary({place, panes}: {readonly place: Place; readonly panes: readonly PaneId[]}) {
	const lines: Record<PaneId, readonly Row[]> = {
		gpu: [gpuSummary(useConsole(selectGpus))],
		processes: processSummary(useConsole(selectProcesses)),
		mounts: [mountSummary(useConsole(selectMounts))],
		extraction: [extractionSummary(useConsole(selectExtraction))],
		log: [logSummary(useConsole(selectLog))],
		operations: operationsSummary(useConsole(selectOperations)),
	};
	const spare = place.height - 1 - panes.length;
	const rows = panes.flatMap(pane =>
		lines[pane].slice(
			0,
			1 + (pane === 'operations' ? Math.max(0, spare - 1) : pane === 'processes' ? Math.min(1, spare) : 0),
		),
	);
	const rule: Row = [{text: '─'.repeat(place.width), tone: 'dim'}];
	return <Region place={place} rows={[rule, ...rows]} />;
}

const NAMES: Record<PaneId, string> = {
	gpu: 'GPU ',
	processes: 'PROC',
	mounts: 'MNT ',
	extraction: 'EXT ',
	log: 'LOG ',
	operations: 'OPS ',
};

const lead = (pane: PaneId): Span => span(` ${paneNumber(pane)} ${NAMES[pane]}  `, 'dim');
const INDENT = span('         ');

/** What a pane says in one line, for the narrow screens and the text mode. */
export function summaryOf(pane: PaneId, state: ConsoleState): Row {
	switch (pane) {
		case 'gpu':
			return gpuSummary(selectGpus(state));
		case 'processes':
			return processSummary(selectProcesses(state))[0] ?? [];
		case 'mounts':
			return mountSummary(selectMounts(state));
		case 'extraction':
			return extractionSummary(selectExtraction(state));
		case 'log':
			return logSummary(selectLog(state));
		case 'operations':
			return operationsSummary(selectOperations(state))[0] ?? [];
	}
}

function gpuSummary({sums, rows, face}: GpuPaneModel): Row {
	if (rows.length === 0)
		return [
			lead('gpu'),
			span(face.kind === 'failing' ? face.words : 'not yet heard', face.kind === 'failing' ? 'bad' : 'dim'),
		];
	const owners = [...new Set(rows.map(row => row.heldBy).filter(Boolean))].join(', ');
	const words: Span[] = [lead('gpu')];
	if (sums.lost > 0) words.push(span(`${sums.lost}/${sums.cards} LOST  `, 'bad'));
	if (sums.heldIdle > 0) words.push(span(`${sums.heldIdle}/${sums.cards} held idle  `, 'bad'));
	words.push(span(`${gib(sums.usedBytes)}/${gib(sums.totalBytes)} GiB  free ${sums.free}/${sums.cards}`));
	if (owners) words.push(span(`  ${owners}`, 'dim'));
	return words;
}

function processSummary({rows, face}: ProcessPaneModel): readonly Row[] {
	if (rows.length === 0) return [[lead('processes'), span(face.kind === 'failing' ? face.words : 'none heard', 'dim')]];
	const stuck = rows.filter(row => row.stuck);
	const holders = rows.filter(row => row.holder || row.gpuBytesBelow !== null).filter(row => row.depth === 0);
	const line = (row: ProcessPaneModel['rows'][number], first: boolean): Row => [
		first ? lead('processes') : INDENT,
		span(`${row.pid} ${row.state} `, row.level),
		span(row.stuckMs === null ? '' : `stuck ${duration(row.stuckMs)} `, row.level),
		span(row.gpuBytesBelow === null ? '' : `${gib(row.gpuBytesBelow)} GiB `),
		span(`${row.owner} `, 'dim'),
		span(row.command),
	];
	const shown = [...holders, ...stuck.filter(row => !holders.includes(row))];
	if (shown.length === 0) return [[lead('processes'), span('nothing holds a GPU, nothing is stuck', 'dim')]];
	return shown.slice(0, 3).map((row, index) => line(row, index === 0));
}

function mountSummary({rows, face}: MountPaneModel): Row {
	if (rows.length === 0)
		return [
			lead('mounts'),
			span(face.kind === 'failing' ? face.words : 'not yet heard', face.kind === 'failing' ? 'bad' : 'dim'),
		];
	return [
		lead('mounts'),
		...rows.flatMap((row): Span[] => {
			const used = row.usedFraction === null ? '' : ` ${Math.round(row.usedFraction * 100)}%`;
			return [
				span(row.state, row.level),
				span(` ${row.path}${row.hungMs === null ? used : ` ${duration(row.hungMs)}`}   `),
			];
		}),
	];
}

function extractionSummary(model: ExtractionPaneModel): Row {
	if (model.present === null)
		return [lead('extraction'), span(model.configured ? 'not yet heard' : 'not configured', 'dim')];
	const eta = model.run?.etaMs && model.state !== 'stalled' ? range(model.run.etaMs.low, model.run.etaMs.high) : '-';
	return [
		lead('extraction'),
		span(`${model.state} `, model.level),
		span(
			`${count(model.present)}/${count(model.expected)} ${percentFine(model.fraction)}  ${rate(model.run?.samplesPerSecond ?? null)}  ETA ${eta}  `,
		),
		span(`${some(model.holes, 'hole')} `, model.holes > 0 ? 'warn' : 'dim'),
		...(model.suspects > 0 ? [span(`${some(model.suspects, 'suspect')} `, 'bad')] : []),
		span(
			`last ${model.lastSampleMs === null ? '-' : age(model.lastSampleMs)} ago`,
			model.level === 'bad' ? 'bad' : 'dim',
		),
	];
}

function logSummary({lines, empty}: LogPaneModel): Row {
	const last = lines.at(-1);
	return [lead('log'), last ? span(last.text, last.level) : span(empty ?? '', 'dim')];
}

function operationsSummary({
	running,
	runbook: {next, met, checks},
	last,
	journal,
}: OperationsPaneModel): readonly Row[] {
	const tail = journal
		.slice(-4)
		.map((entry): Row => [INDENT, span(`${clock(entry.at)} ${entry.words}`, 'dim')])
		.reverse();
	if (running) {
		const {operation, current, done, steps} = running;
		return [
			[
				lead('operations'),
				span(`${operation} ${done}/${steps.length} `, 'accent'),
				span(current ? current.words || current.says : ''),
			],
			...tail,
		];
	}
	if (next) {
		const key = next.operation ? operationKeys(next.operation) : null;
		return [
			[
				lead('operations'),
				span(`next ${met + 1}/${checks.length} ${key ? `[${key}] ` : ''}`, 'accent'),
				span(next.words),
			],
			...tail,
		];
	}
	return last
		? [
				[lead('operations'), span(`${last.operation} `), span(last.outcome, last.level), span(` ${last.words}`, 'dim')],
				...tail,
			]
		: [[lead('operations'), span('nothing to do', 'dim')], ...tail];
}
