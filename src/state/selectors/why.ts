import {type CauseLink, causeOfCard, causeOfProcess} from '../../ops/cause/cause.ts';
import type {Facts} from '../../ops/facts.ts';
import {launchFindings} from '../../ops/hook/verdict.ts';
import {dumpWay} from '../../ops/operations/dump-way.ts';
import type {Process} from '../../ops/probes/processes.ts';
import type {Target} from '../../ops/target.ts';
import type {Level} from './face.ts';

/** Words with the quantities left as quantities: printing them is the screen's business. */
export type Part = string | {readonly bytes: number | null} | {readonly ms: number | null} | {readonly at: number};
export type WhyLine = {
	readonly parts: readonly Part[];
	readonly level: Level;
	readonly step: 'head' | 'because' | 'mend' | 'note';
};

export const note = (...parts: Part[]): WhyLine => ({parts, level: 'plain', step: 'note'});

const STEPS: Record<CauseLink['step'], WhyLine['step']> = {
	held: 'head',
	process: 'because',
	ancestor: 'because',
	owner: 'because',
	boot: 'because',
	fix: 'mend',
	note: 'note',
};
const LEVELS: Record<CauseLink['level'], Level> = {
	plain: 'plain',
	dim: 'dim',
	good: 'good',
	warning: 'warn',
	critical: 'bad',
};

const toLine = ({step, says, bytes, level}: CauseLink): WhyLine => ({
	parts: bytes === undefined ? [says] : [`${says}  `, {bytes}, ...(step === 'held' ? [' held'] : [])],
	level: LEVELS[level],
	step: STEPS[step],
});

/** The chain of a card's memory, down to the durable fix. */
export function whyOfCard(uuid: string, facts: Facts): readonly WhyLine[] {
	const links = causeOfCard(uuid, facts);
	if (links.length > 0) return links.map(toLine);
	const lost = facts.gpus?.last?.value.lost.find(card => `lost:${card.busId}` === uuid);
	if (!lost) return [note('this card is not there any more')];
	return [
		{parts: [`card at ${lost.busId} is lost`], level: 'plain', step: 'head'},
		{parts: [lost.says], level: 'bad', step: 'because'},
		{parts: [lost.advice], level: 'plain', step: 'mend'},
	];
}

/** From a process upwards. */
export const whyOfProcess = (process: Process, facts: Facts, bytes?: number | null): readonly WhyLine[] =>
	causeOfProcess(process, facts, bytes).map(toLine);

const because = (level: Level, ...parts: Part[]): WhyLine => ({parts, level, step: 'because'});

/** What would dump hidden states in a launch now, and what speaks against it. Nothing where nothing is to be dumped. */
export function whyOfDumps(target: Target, facts: Facts): readonly WhyLine[] {
	const way = dumpWay({target, facts});
	if (way === null) return [];
	if (!way.known) return [because('warn', `what a launch would dump through is unknown: ${way.why}`)];
	const {against, warnings} = launchFindings(way.verdict);
	return [
		note(`a launch now would dump through ${way.verdict.way === 'none' ? 'nothing' : `the ${way.verdict.way}`}`),
		...against.map(words => because('bad', words)),
		...warnings.map(words => because('warn', words)),
	];
}
