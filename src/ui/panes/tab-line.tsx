import {derive} from '../../state/selectors/derive.ts';
import {selectExtraction} from '../../state/selectors/extraction.ts';
import {type Face, face} from '../../state/selectors/face.ts';
import {selectGpus} from '../../state/selectors/gpus.ts';
import {selectMounts} from '../../state/selectors/mounts.ts';
import {factsOnScreen, nowOnScreen} from '../../state/selectors/on-screen.ts';
import {selectOperations} from '../../state/selectors/operations.ts';
import {selectProcesses} from '../../state/selectors/processes.ts';
import {type ConsoleState, PANES, type PaneId} from '../../state/state.ts';
import {duration} from '../format.ts';
import {useConsole} from '../hooks/use-console.ts';
import {type Place, Region} from '../parts/region.tsx';
import {faceRow} from '../parts/title.ts';
import {type Row, rowWidth, type Span, span, truncateRow} from '../theme.ts';

type Tab = {readonly pane: PaneId; readonly focused: boolean; readonly troubled: boolean};

const selectTabs = derive(
	[
		state => state.view.focus,
		state => selectGpus(state).rows.some(row => row.level === 'bad'),
		state => selectProcesses(state).stuck > 0,
		state => selectMounts(state).troubled > 0,
		state => selectExtraction(state).level === 'bad',
	],
	(focus, gpu, processes, mounts, extraction): readonly Tab[] =>
		PANES.map(pane => ({
			pane,
			focused: pane === focus,
			troubled: {gpu, processes, mounts, extraction, log: false, operations: false}[pane],
		})),
);

const PROBE_OF = {
	gpu: 'gpus',
	processes: 'processes',
	mounts: 'mounts',
	extraction: 'extraction',
	log: 'log',
	operations: null,
} as const;

/** Of the focused pane; the timeline is our own and always fresh. */
const selectFace = derive(
	[state => state.view.focus, factsOnScreen, nowOnScreen],
	(focus, facts, nowMs): Face | null => {
		const probe = PROBE_OF[focus];
		return probe === null ? null : face(probe, facts[probe], nowMs);
	},
);

/** How far an operation is, in its own tab: the face of a probe stands there in the others. */
const selectProgress = derive([state => state.view.focus, selectOperations], (focus, {running}): Row | null =>
	focus === 'operations' && running
		? [span(`${running.operation} ${running.done}/${running.steps.length} ${duration(running.elapsedMs)}`, 'accent')]
		: null,
);

export function TabLine({place}: {readonly place: Place}) {
	const shown = useConsole(selectFace);
	const progress = useConsole(selectProgress);
	const end = shown ? faceRow(shown) : progress;
	return <Region place={place} rows={[tabRow(useConsole(selectTabs), end, place.width)]} />;
}

export const troubledTabs = (state: ConsoleState): readonly PaneId[] =>
	selectTabs(state)
		.filter(tab => tab.troubled)
		.map(tab => tab.pane);

const NAMES: Record<PaneId, string> = {
	gpu: 'GPU',
	processes: 'PROC',
	mounts: 'MNT',
	extraction: 'EXT',
	log: 'LOG',
	operations: 'OPS',
};

/** `━[1 GPU!]━ 2 PROC ━ 3 MNT! ━`: the tab line is the title of the focused pane; `!` is trouble in there. */
export function tabRow(tabs: readonly Tab[], shown: Row | null, width: number): Row {
	const row: Span[] = [{text: '━', tone: 'accent'}];
	for (const [index, {pane, focused, troubled}] of tabs.entries()) {
		const name = `${index + 1} ${NAMES[pane]}`;
		const mark: Span = {text: troubled ? '!' : '', tone: 'bad'};
		if (focused) row.push({text: '[', tone: 'accent'}, {text: name, tone: 'title'}, mark, {text: ']', tone: 'accent'});
		else row.push({text: ` ${name}`, tone: 'dim'}, mark, {text: ' ', tone: 'dim'});
		row.push({text: '━', tone: 'accent'});
	}
	const room = width - rowWidth(row);
	const end =
		shown === null || room < 10
			? []
			: [{text: ' ', tone: 'dim' as const}, ...truncateRow(shown, room - 4), {text: ' ', tone: 'dim' as const}];
	return truncateRow([...row, {text: '━'.repeat(Math.max(0, room - rowWidth(end))), tone: 'accent'}, ...end], width);
}
