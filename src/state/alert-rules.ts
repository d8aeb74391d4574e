import {hasNoCards} from '../ops/no-cards.ts';
import {describe} from '../ops/outcome.ts';
import type {KernelFinding} from '../ops/probes/kernel-log.ts';
import type {Process} from '../ops/probes/processes.ts';
import {bootVerdict, runState} from '../ops/probes/service-verdicts.ts';
import {isFrozen} from '../ops/probes/stuck.ts';
import {badMounts, fillingMounts, hungMounts} from './mount-alerts.ts';
import type {Alert, ConsoleState, PaneId} from './state.ts';
import {waiting} from './waiting.ts';

/**
 * One row per thing worth waking somebody for. `sees` gives the subjects it is true of now, with the words for each; an
 * alert is raised when the same subject was seen for `afterMs`, and cleared when it was not seen for `clearMs`.
 */
export type AlertRule = {
	readonly id: string;
	readonly level: Alert['level'];
	readonly pane: PaneId;
	readonly afterMs: number;
	readonly remedy: string;
	sees(
		state: Pick<ConsoleState, 'facts' | 'target' | 'nowMs' | 'route'>,
	): readonly {readonly subject: string; readonly words: string}[];
};

export type Seen = Pick<ConsoleState, 'facts' | 'target' | 'nowMs' | 'route'>;

const HELD_BYTES = 1024 ** 3;

export const ALERT_RULES: readonly AlertRule[] = [
	{
		id: 'route-down',
		level: 'critical',
		pane: 'operations',
		afterMs: 3_000,
		remedy:
			'nothing is known to be down: the host did not answer; the guest as its hypervisor sees it is in the operations pane',
		sees: ({route, facts}) =>
			route.state === 'down'
				? [
						{
							subject: 'host',
							words: `host unreachable: ${facts.guest?.last?.value.verdict ?? route.passedOver.map(each => `${each.label}: ${each.reason}`).join('; ')}`,
						},
					]
				: [],
	},
	{
		id: 'driver-silent',
		level: 'critical',
		pane: 'gpu',
		afterMs: 5_000,
		remedy: 'values are the last good ones; look for Xid in the kernel log; do not start anything on these cards',
		sees({facts, route, target}) {
			const failing = facts.gpus?.failing;
			if (route.state !== 'up' || !failing || hasNoCards(facts, target)) return [];
			return [{subject: 'driver', words: `cards: ${describe(failing.failure)}`}];
		},
	},
	{
		id: 'card-lost',
		level: 'critical',
		pane: 'gpu',
		afterMs: 0,
		remedy: 'reboot or power cycle; killing processes will not help',
		sees: ({facts}) =>
			(facts.gpus?.last?.value.lost ?? []).map(card => ({
				subject: card.busId,
				words: `GPU ${card.busId} lost: ${card.says}`,
			})),
	},
	{
		id: 'unwanted-unit',
		level: 'critical',
		pane: 'gpu',
		afterMs: 0,
		remedy: 'o 1: stop it and take it out of the boot',
		sees: unwantedUnits,
	},
	{
		id: 'held-idle',
		level: 'critical',
		pane: 'gpu',
		afterMs: 10_000,
		remedy: 'o 1 or o 2: stop the unit, free the cards',
		sees: heldIdle,
	},
	{
		id: 'mount-hung',
		level: 'critical',
		pane: 'mounts',
		afterMs: 0,
		remedy: 'processes on it cannot die until it answers; free the storage first',
		sees: hungMounts,
	},
	{
		id: 'mount-bad',
		level: 'critical',
		pane: 'mounts',
		afterMs: 0,
		remedy: 'do not start anything that writes there',
		sees: badMounts,
	},
	{
		id: 'mount-filling',
		level: 'warning',
		pane: 'mounts',
		afterMs: 0,
		remedy: 'free space before the job ends up short',
		sees: fillingMounts,
	},
	{
		id: 'task-stuck',
		level: 'warning',
		pane: 'processes',
		afterMs: 0,
		remedy: 'it waits for I/O: look at the mounts; a signal changes nothing until the I/O returns',
		sees: ({facts, nowMs}) =>
			waiting(facts.processes?.last?.value.processes ?? [])
				.filter(process => standsStill(process, nowMs) && !isFrozen(process))
				.map(process => ({
					subject: `${process.pid}@${process.startTicks}`,
					words: `pid ${process.pid} (${process.name}) stuck in D${process.waitChannel ? ` at ${process.waitChannel}` : ''}`,
				})),
	},
	{
		id: 'task-frozen',
		level: 'warning',
		pane: 'processes',
		afterMs: 0,
		remedy: 'thaw its control group (freezer.state, or what paused it); until then it does not even hear SIGKILL',
		sees: ({facts, nowMs}) =>
			waiting(facts.processes?.last?.value.processes ?? [])
				.filter(process => standsStill(process, nowMs) && isFrozen(process))
				.map(process => ({
					subject: `${process.pid}@${process.startTicks}`,
					words: `pid ${process.pid} (${process.name}) frozen by its control group`,
				})),
	},
	{
		id: 'kernel',
		level: 'critical',
		pane: 'log',
		afterMs: 0,
		remedy: 'see the kernel log (log pane, source kernel)',
		sees: state =>
			(state.facts['kernel-log']?.last?.value.findings ?? [])
				.filter(finding => finding.kind !== 'segfault' && isRecent(finding, state))
				.slice(-3)
				.map(finding => ({
					subject: finding.text,
					words: `kernel: ${finding.text}${finding.count > 1 ? ` (${finding.count} times)` : ''}`,
				})),
	},
	{
		id: 'server-dead',
		level: 'critical',
		pane: 'log',
		afterMs: 0,
		remedy: 'read the log tail for the cause, then o 3: launch again',
		sees({facts}) {
			const server = facts.server?.last?.value;
			if (!server?.record || server.process === 'none' || server.process === 'alive') return [];
			const why = server.failure ? `: ${server.failure.class}` : '';
			return [{subject: server.record.launchId, words: `server is ${server.process}${why}`}];
		},
	},
	{
		id: 'no-new-sample',
		level: 'critical',
		pane: 'extraction',
		afterMs: 30_000,
		remedy: 'look at the server log and the output mount',
		sees({facts, nowMs}) {
			const seen = facts.extraction?.last?.value;
			const newest = seen?.inventory?.newestAt;
			if (!seen?.run?.alive || seen.run.state !== 'extracting' || !newest || nowMs - newest < 120_000) return [];
			return [
				{
					subject: 'run',
					words: `no new sample for ${Math.round((nowMs - newest) / 60_000)} min while the extractor runs`,
				},
			];
		},
	},
	{
		id: 'suspect-files',
		level: 'warning',
		pane: 'extraction',
		afterMs: 0,
		remedy: 'the extractor does them again; nothing is deleted',
		sees({facts}) {
			const count = facts.extraction?.last?.value.inventory?.suspects.length ?? 0;
			return count > 0 ? [{subject: 'files', words: `${count} stored file(s) are not whole`}] : [];
		},
	},
	{
		id: 'script-gone',
		level: 'warning',
		pane: 'extraction',
		afterMs: 0,
		remedy: 'o 6: restore files',
		sees: ({facts, target}) =>
			facts.extraction?.last?.value.script === 'gone'
				? [{subject: 'script', words: `extraction script gone: ${target.extraction?.script?.destination ?? ''}`}]
				: [],
	},
	{
		id: 'run-complete',
		level: 'info',
		pane: 'extraction',
		afterMs: 0,
		remedy: 'all samples are there',
		sees({facts}) {
			const inventory = facts.extraction?.last?.value.inventory;
			return inventory && inventory.expected !== null && inventory.complete >= inventory.expected
				? [{subject: 'run', words: `extraction complete: ${inventory.complete} samples`}]
				: [];
		},
	},
];

const STILL_MS = 30_000;
const standsStill = ({state, stuckSince}: Process, nowMs: number): boolean =>
	state === 'D' && stuckSince !== null && nowMs - stuckSince > STILL_MS;

const RECENT_MS = 15 * 60_000;

/** Older than that it is history for the log pane. Without wall time in the log the host's own uptime tells the age. */
function isRecent({at, sinceBootSeconds}: KernelFinding, {facts, nowMs}: Seen): boolean {
	if (at !== null) return nowMs - at < RECENT_MS;
	const table = facts.processes?.last?.value;
	if (sinceBootSeconds === null || !table || table.ticksPerSecond === 0) return false;
	return (table.uptimeTicks / table.ticksPerSecond - sinceBootSeconds) * 1_000 < RECENT_MS;
}

function unwantedUnits({facts}: Seen) {
	const units = facts.services?.last?.value.units.filter(unit => unit.unwanted) ?? [];
	return units.flatMap(unit => {
		const state = runState(unit);
		const boot = bootVerdict(unit).comesBack;
		if (state === 'stopped' && boot !== 'yes') return [];
		return [
			{
				subject: unit.unit,
				words: `${unit.unit} ${state === 'stopped' ? 'is stopped but comes back at boot' : `is ${state}${boot === 'yes' ? ' and comes back at boot' : ''}`}`,
			},
		];
	});
}

function heldIdle({facts}: Seen) {
	const cards = facts.gpus?.last?.value.cards ?? [];
	const server = facts.server?.last?.value;
	if (server?.process === 'alive') return [];
	const held = cards.filter(
		card =>
			card.memoryUsedBytes.known &&
			card.memoryUsedBytes.value > HELD_BYTES &&
			card.busyPercent.known &&
			card.busyPercent.value === 0 &&
			!card.sharedMemory,
	);
	return held.length > 0 ? [{subject: 'cards', words: `${held.length} GPU(s) held at 0 % busy`}] : [];
}
