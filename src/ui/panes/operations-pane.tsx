import type {StepState} from '../../ops/operations/operation.ts';
import {type OperationsPaneModel, type StepRow, selectOperations} from '../../state/selectors/operations.ts';
import {clock, duration} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {operationKeys} from '../keymap/operation-keys.ts';
import {Region} from '../parts/region.tsx';
import {windowOn} from '../parts/table.ts';
import {paneTitle} from '../parts/title.ts';
import {clean, wrap} from '../safe.ts';
import {invert, type Row, rowWidth, span, spread, type Tone} from '../theme.ts';
import {frameOf, type PaneFrame, type PaneProps, paneRows} from './pane.ts';

export function OperationsPane(props: PaneProps) {
	return <Region place={props.place} rows={operationsPaneRows(useConsole(selectOperations), frameOf(props))} />;
}

export function operationsPaneRows(model: OperationsPaneModel, frame: PaneFrame): readonly Row[] {
	const {running} = model;
	const words: Row = running
		? [span(`${running.done}/${running.steps.length} `, 'accent'), span(running.title)]
		: [span(`runbook ${model.runbook.met}/${model.runbook.checks.length}`)];
	const right: Row = model.dryRun
		? [span('DRY-RUN', 'warn')]
		: running
			? [span(duration(running.elapsedMs), 'dim')]
			: [];
	return paneRows(frame, paneTitle('operations', frame.focused, words, right, frame.width), height => {
		const top = running
			? stepRows(running, frame.width, height)
			: [...runbookRows(model, height), ...lastRows(model, frame.width)];
		return [...top, ...journalRows(model, frame, height - top.length)];
	});
}

const MARKS: Record<StepState, string> = {
	pending: '[  ]',
	running: '[..]',
	done: '[ok]',
	failed: '[!!]',
	unknown: '[??]',
	skipped: '[--]',
};

const DETAIL_LINES = 2;

function stepRows(running: NonNullable<OperationsPaneModel['running']>, width: number, height: number): readonly Row[] {
	const {steps, current} = running;
	const at = current ? current.number - 1 : 0;
	const detail = detailRows(current, width);
	const most = Math.max(1, Math.min(steps.length, Math.floor((height * 2) / 3) - detail.length));
	const {from, to} = windowOn(steps.length, at, most);
	const rows = steps.slice(from, to).flatMap((step, index): readonly Row[] => {
		if (from + index !== at || detail.length === 0) return [stepRow(step, width)];
		return [stepRow({...step, words: ''}, width), ...detail];
	});
	const output = running.output.slice(-Math.min(2, Math.max(0, height - rows.length - 3)));
	return [...rows, ...output.map((line): Row => [span('      '), span(line, 'dim')])];
}

/** What a running step waits for, on lines of its own where it does not fit beside its name. */
function detailRows(step: StepRow | null, width: number): readonly Row[] {
	if (!step?.words) return [];
	const time = step.elapsedMs === null ? '' : ` ${duration(step.elapsedMs)} `;
	const whole = [...headOf(step), span(`  ${step.words}${time}`)];
	if (rowWidth(whole) <= width) return [];
	return wrap(clean(step.words), Math.max(10, width - 7))
		.slice(0, DETAIL_LINES)
		.map((line): Row => [span(`      ${line}`, 'accent')]);
}

const headOf = ({state, number, says, level}: StepRow): Row => [
	span(` ${MARKS[state]} ${number} `, state === 'running' ? 'accent' : level),
	span(says, state === 'pending' ? 'dim' : 'plain'),
];

function stepRow(step: StepRow, width: number): Row {
	const said: Row = step.words ? [span(`  ${step.words}`, step.level === 'bad' ? 'bad' : 'dim')] : [];
	const time: Row = step.elapsedMs === null ? [] : [span(` ${duration(step.elapsedMs)} `, 'dim')];
	return spread([...headOf(step), ...said], time, width);
}

const VERDICTS = {met: ['[ok]', 'good'], pending: ['[  ]', 'accent'], failed: ['[??]', 'warn']} as const;

/** The runbook's checks where there is room, and always the one to take up next. */
function runbookRows({runbook}: OperationsPaneModel, height: number): readonly Row[] {
	const {next, checks} = runbook;
	const key = next ? operationKeys(next.operation) : null;
	const line: Row = next
		? [span(` next ${key ? `[${key}] ` : ''}`, 'accent'), span(next.words, 'title')]
		: [span(' nothing to mend: ', 'good'), span(`all ${checks.length} checks hold`)];
	if (height < checks.length + 5) return [line];
	return [
		line,
		...checks.map(({id, state, words}): Row => {
			const [mark, tone] = VERDICTS[state];
			return [span(` ${mark} ${id.padEnd(11)}`, tone), span(words, state === 'met' ? 'dim' : 'plain')];
		}),
	];
}

/** How the last operation ended; the words of a failure are what the operator needs whole. */
function lastRows({last}: OperationsPaneModel, width: number): readonly Row[] {
	if (!last) return [];
	const head: Row = [
		span(` last  ${last.operation} `, 'dim'),
		span(last.outcome, last.level),
		span(` ${duration(last.agoMs)} ago`, 'dim'),
	];
	const most = last.level === 'good' ? 1 : 4;
	const lines = wrap(clean(last.words), Math.max(10, width - 8)).slice(0, most);
	return [head, ...lines.map((line): Row => [span(`       ${line}`, last.level === 'good' ? 'dim' : last.level)])];
}

const TONES: Record<OperationsPaneModel['journal'][number]['level'], Tone> = {
	ok: 'plain',
	warning: 'warn',
	critical: 'bad',
	info: 'dim',
};

function journalRows({journal}: OperationsPaneModel, frame: PaneFrame, room: number): readonly Row[] {
	if (room <= 0) return [];
	const selected = journal.findIndex(entry => entry.selected);
	const {from, to} = windowOn(journal.length, selected < 0 ? journal.length - 1 : selected, room);
	return journal.slice(from, to).map(entry => {
		const row: Row = [
			span(`${entry.selected ? '>' : ' '}${clock(entry.at)} `, 'dim'),
			{text: clean(entry.words), tone: TONES[entry.level]},
		];
		return entry.selected && frame.focused ? invert(row) : row;
	});
}
