import {identityOf} from '../../ops/probes/probe.ts';
import {processOf} from '../../ops/probes/process-table.ts';
import type {ConsoleState, PaneId} from '../state.ts';
import {derive} from './derive.ts';
import {selectExtraction} from './extraction.ts';
import {selectGpus} from './gpus.ts';
import {selectLog} from './log.ts';
import {selectMounts} from './mounts.ts';
import {factsOnScreen} from './on-screen.ts';
import {selectOperations} from './operations.ts';
import {selectProcesses} from './processes.ts';
import {note, type WhyLine, whyOfCard, whyOfDumps, whyOfProcess} from './why.ts';

/** All that is known of the selected row of a pane, and why it is so. */
export function detailsOf(state: ConsoleState, pane: PaneId): readonly WhyLine[] {
	switch (pane) {
		case 'gpu': {
			const row = selectGpus(state).rows.find(({selected}) => selected);
			return row ? whyOfCard(row.key, factsOnScreen(state)) : [note('no card is selected')];
		}
		case 'processes':
			return processDetails(state);
		case 'mounts':
			return mountDetails(state);
		case 'extraction':
			return extractionDetails(state);
		case 'log':
			return [note(`log: ${selectLog(state).path ?? 'none'}`)];
		case 'operations': {
			const {journal, running} = selectOperations(state);
			const entry = journal.find(({selected}) => selected) ?? journal.at(-1);
			const output = (running?.output ?? []).slice(-40).map(line => note(line));
			if (!entry) return output.length > 0 ? output : [note('the journal is empty')];
			return [
				note({at: entry.at}, `  ${entry.words}`),
				...(entry.command ? entry.command.split('\n').map(line => note(line)) : []),
				...output,
			];
		}
	}
}

/** For the pane beside the processes on a wide screen: the selected card's chain, or that of the process in focus. */
export const selectWhy: (state: ConsoleState) => {readonly title: string; readonly lines: readonly WhyLine[]} = derive(
	[
		factsOnScreen,
		state => selectGpus(state).rows.find(({selected}) => selected)?.key ?? null,
		state =>
			state.view.focus === 'processes'
				? (selectProcesses(state).rows.find(({selected}) => selected)?.key ?? null)
				: null,
	],
	(facts, card, key) => {
		const process = key === null ? null : processOf(facts.processes?.last?.value.processes ?? [], identityOf(key));
		if (process) return {title: `WHY pid ${process.pid}`, lines: whyOfProcess(process, facts)};
		if (card === null) return {title: 'WHY', lines: []};
		const index = facts.gpus?.last?.value.cards.find(({uuid}) => uuid === card)?.index;
		return {title: index === undefined ? 'WHY lost card' : `WHY GPU ${index} memory`, lines: whyOfCard(card, facts)};
	},
);

function processDetails(state: ConsoleState): readonly WhyLine[] {
	const row = selectProcesses(state).rows.find(({selected}) => selected);
	if (!row) return [note('no process is selected')];
	const facts = factsOnScreen(state);
	const process = processOf(facts.processes?.last?.value.processes ?? [], identityOf(row.key));
	if (!process)
		return [
			note(`pid ${row.pid}: ${row.command}`),
			note('the driver charges memory to it, but it is not visible here: look from the hypervisor'),
		];
	const still = row.stuckMs === null ? [] : [note('in this wait for ', {ms: row.stuckMs})];
	return [
		...whyOfProcess(process, facts, row.gpuBytes ?? undefined),
		...still,
		note('resident ', {bytes: process.residentBytes}, `, ${process.threads} threads`),
	];
}

function mountDetails(state: ConsoleState): readonly WhyLine[] {
	const row = selectMounts(state).rows.find(({selected}) => selected);
	if (!row) return [note('no mount is selected')];
	const lines = [
		note(`${row.path}: ${row.state}`, ...(row.hungMs === null ? [] : [' for ', {ms: row.hungMs}])),
		note(`${row.type} ${row.source}`),
	];
	if (row.notes) lines.push(note(row.notes));
	if (row.totalBytes !== null) lines.push(note({bytes: row.availableBytes}, ' free of ', {bytes: row.totalBytes}));
	const stuck = selectProcesses(state).rows.filter(({stuck}) => stuck);
	if (row.state === 'HUNG' && stuck.length > 0) {
		lines.push(
			note(`processes stuck in I/O now: ${stuck.map(({pid, command}) => `${pid} ${command.slice(0, 40)}`).join(', ')}`),
		);
	}
	return lines;
}

function extractionDetails(state: ConsoleState): readonly WhyLine[] {
	const facts = factsOnScreen(state).extraction?.last?.value ?? null;
	const model = selectExtraction(state);
	const group = model.groups.find(({selected}) => selected);
	const holes = facts?.inventory?.holes ?? [];
	const suspects = facts?.inventory?.suspects ?? [];
	return [
		...(group
			? [note(`${group.name}: ${group.present} of ${group.expected}, ${group.state}  `, {bytes: group.bytes})]
			: []),
		...(facts?.inventory?.newestPath ? [note(`newest: ${facts.inventory.newestPath}`)] : []),
		...(model.run?.message ? [note(`run: ${model.run.message}`)] : []),
		note(
			`holes: ${holes.length === 0 ? 'none' : holes.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(', ')}`,
		),
		...suspects.map(({path, reason}) => note(`suspect: ${path}: ${reason}`)),
		...(suspects.length === 0 ? [note('suspects: none')] : []),
		...whyOfDumps(state.target, factsOnScreen(state)),
	];
}
