import type {Facts} from '../../ops/facts.ts';
import {fresh} from '../../ops/facts.ts';
import {launchFindings} from '../../ops/hook/verdict.ts';
import {dumpWay} from '../../ops/operations/dump-way.ts';
import {identityKey} from '../../ops/probes/probe.ts';
import type {Process} from '../../ops/probes/processes.ts';
import {bootVerdict, runState} from '../../ops/probes/services.ts';
import {redact} from '../../ops/redact.ts';
import type {Target} from '../../ops/target.ts';
import type {Level} from './face.ts';
import {holdersOf, ownerName, processesByKey, usedOn} from './owners.ts';

/** Words with the quantities left as quantities: printing them is the screen's business. */
export type Part = string | {readonly bytes: number | null} | {readonly ms: number | null} | {readonly at: number};
export type WhyLine = {
	readonly parts: readonly Part[];
	readonly level: Level;
	readonly step: 'head' | 'because' | 'mend' | 'note';
};

const head = (...parts: Part[]): WhyLine => ({parts, level: 'plain', step: 'head'});
const because = (level: Level, ...parts: Part[]): WhyLine => ({parts, level, step: 'because'});
const mend = (...parts: Part[]): WhyLine => ({parts, level: 'plain', step: 'mend'});
export const note = (...parts: Part[]): WhyLine => ({parts, level: 'plain', step: 'note'});

/** Memory <- process <- parent <- unit, container or session <- what wants it at boot, then the durable fix. */
export function whyOfCard(uuid: string, facts: Facts): readonly WhyLine[] {
	const gpu = facts.gpus?.last?.value.cards.find(card => card.uuid === uuid);
	if (!gpu) {
		const lost = facts.gpus?.last?.value.lost.find(card => `lost:${card.busId}` === uuid);
		return lost
			? [head(`card at ${lost.busId} is lost`), because('bad', lost.says), mend(lost.advice)]
			: [note('this card is not there any more')];
	}
	const used = gpu.memoryUsedBytes.known ? gpu.memoryUsedBytes.value : null;
	const holders = fresh(facts.holders);
	const lines = [head(`GPU ${gpu.index} ${gpu.busId}  `, {bytes: used}, ' held')];
	if (!holders) return [...lines, because('warn', 'who holds it is unknown: the last look failed or has not come')];
	const table = processesByKey(fresh(facts.processes));
	const holding = holdersOf(gpu, holders);
	if (holding.length === 0) {
		const words =
			holders.driverList === 'unresolvable'
				? 'the driver lists pids that are not visible from here'
				: 'no process is listed or has its device open';
		return [...lines, because(used !== null && used > 2 ** 30 ? 'bad' : 'dim', words)];
	}
	const [first, ...rest] = holding;
	if (first) {
		const process = first.startTicks === null ? undefined : table.get(`${first.pid}@${first.startTicks}`);
		if (process) lines.push(...whyOfProcess(process, facts, [{bytes: usedOn(first, uuid)}]));
		else
			lines.push(
				because(
					'warn',
					`pid ${first.pid} ${first.driverName}  `,
					{bytes: usedOn(first, uuid)},
					', not visible from here: look from the hypervisor',
				),
			);
	}
	if (rest.length > 0) lines.push(note(`and ${rest.length} more: pid ${rest.map(({pid}) => pid).join(', ')}`));
	return lines;
}

/** From a process upwards. */
export function whyOfProcess(process: Process, facts: Facts, holds: readonly Part[] = []): readonly WhyLine[] {
	const table = fresh(facts.processes)?.processes ?? [];
	const lines = [
		because(
			'plain',
			`pid ${process.pid} ${process.name} (start ${process.startTicks})${holds.length > 0 ? '  ' : ''}`,
			...holds,
		),
	];
	if (process.state === 'D')
		lines.push(
			because(
				'bad',
				`waits in the kernel (${process.waitChannel ?? 'unknown place'}): cannot end before its I/O returns`,
			),
		);
	if (process.killPending) lines.push(because('warn', 'a SIGKILL is already pending: another one changes nothing'));
	const line = facts['command-lines']?.last?.value.lines.get(identityKey(process));
	if (line) lines.push(note(redact(line)));
	const parent = table.find(one => one.pid === process.parentPid && one.pid > 1);
	if (parent) lines.push(because('plain', `parent pid ${parent.pid} ${parent.name}`));
	return [...lines, ...whyOfOwner(process, facts)];
}

function whyOfOwner({owner}: Process, facts: Facts): readonly WhyLine[] {
	if (owner.kind === 'unknown') return [because('warn', 'what keeps it is unknown')];
	if (owner.kind === 'none')
		return [because('plain', 'no unit, container or session keeps it'), mend('x sends a signal')];
	if (owner.kind !== 'unit') return [because('plain', ownerName(owner) ?? '')];
	const services = fresh(facts.services);
	const unit = services?.units.find(one => one.unit === owner.unit);
	if (!unit)
		return [
			because('plain', owner.unit),
			because('warn', 'whether it comes back is unknown: the unit has not been seen'),
		];
	const boot = bootVerdict(unit);
	const lines = [
		because(
			'plain',
			`${unit.unit} ${runState(unit)}, Restart=${unit.restart || 'no'}${unit.restarts > 0 ? `, restarted ${unit.restarts} times` : ''}`,
		),
	];
	if (boot.comesBack === 'yes') {
		lines.push(...boot.because.map(why => because('bad', `comes back at boot: ${why}`)));
		lines.push(note('a kill alone returns at the next boot'), mend('durable fix: stop + disable  -> o 1'));
	} else if (boot.comesBack === 'unknown') lines.push(because('warn', `at boot: unknown, ${boot.because}`));
	else lines.push(because('good', 'does not come back at boot'), mend('o 1 stops it'));
	return lines;
}

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
