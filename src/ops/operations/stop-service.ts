import {show} from '../command.ts';
import {fresh} from '../facts.ts';
import {hasNoCards} from '../no-cards.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import type {Service} from '../probes/services.ts';
import {heldBack, isFrozen} from '../probes/stuck.ts';
import {type BootBlock, bootBlocks} from './boot-block.ts';
import {endablePids} from './claims.ts';
import {type Operation, refuse, type Situation, type Verdict} from './operation.ts';

/** A stop may take as long as the unit says, and then a little: systemd's own limit comes first. */
const GRACE_MS = 45_000;

export const stopService: Operation<{unit: string}> = {
	id: 'stop-service',
	title: 'stop a service for good',
	tier: 2,

	defaultInput(situation) {
		const {facts} = situation;
		const services = fresh(facts.services);
		if (!services) return refuse('the services have not been seen yet');
		if (services.manager !== 'systemd') return refuse(`no service manager answers on this host (${services.manager})`);
		const holders = endablePids(situation);
		const bad = services.units.filter(
			unit => (unit.unwanted || unit.pids.some(pid => holders.has(pid))) && needsStopping(unit),
		);
		bad.sort((one, other) => Number(other.unwanted) - Number(one.unwanted) || one.unit.localeCompare(other.unit));
		const first = bad[0];
		return first ? {unit: first.unit} : refuse('no unwanted service runs or comes back at boot');
	},

	plan({unit}, {facts, target}) {
		const services = fresh(facts.services);
		const service = services?.units.find(each => each.unit === unit);
		if (!service) return refuse(`${unit} has not been seen on this host, or the last look failed`);
		if (!needsStopping(service)) return refuse(`${unit} is stopped and does not come back at boot`);
		const running = runState(service) !== 'stopped';
		const cards = cardsHeldBy(service.pids, facts);
		const blocks = bootBlocks(service, target.routes[0]?.environment.etc ?? '/etc');
		const hold = blocks.map(({id, says, script}) => ({kind: 'run' as const, id, says, script, limitMs: 30_000}));
		const stop = {
			kind: 'run' as const,
			id: 'stop',
			says: `stop ${unit} (without waiting, so that a lost link changes nothing)`,
			script: show(['systemctl', 'stop', '--no-block', '--', unit]),
			limitMs: 20_000,
		};
		// What something else starts again has to be held before it is stopped.
		const stirred = service.triggeredBy.length > 0 || service.requiredBy.length > 0;
		return {
			operation: 'stop-service',
			title: `stop ${unit} and keep it from coming back at boot`,
			tier: 2,
			confirmWord: confirmWord(unit),
			targets: [
				{
					kind: 'unit',
					identity: unit,
					says: `${unit}  ${service.activeState}/${service.subState}  ${service.unitFileState}  ${service.description}`,
				},
				...(service.pids.length > 0
					? [
							{
								kind: 'process' as const,
								identity: `cgroup of ${unit}`,
								says: `with all ${service.pids.length} processes of its control group: pid ${service.pids.join(' ')}`,
							},
						]
					: []),
			],
			excluded: [],
			steps: [
				...(stirred ? hold : []),
				...(running ? [stop] : []),
				...(stirred ? [] : hold),
				{
					kind: 'wait',
					id: 'gone',
					says: 'until it is inactive, its processes are gone, its GPU memory is free and nothing wants it at boot',
					looks: ['services', 'holders', 'gpus', 'processes'],
					limitMs: (service.stopLimitMs ?? 300_000) + GRACE_MS,
					until: (situation, since) => stopped(unit, service.pids, cards, situation, since),
				},
			],
			warnings: warnings(service),
			inverse: service.loadState === 'not-found' ? null : inverse(unit, blocks, running),
		};
	},
};

const needsStopping = (service: Service): boolean =>
	runState(service) !== 'stopped' || bootVerdict(service).comesBack === 'yes';

function warnings(service: Service): string[] {
	const boot = bootVerdict(service);
	return [
		...(boot.comesBack === 'yes' ? boot.because.map(why => `comes back at boot: ${why}`) : []),
		...(boot.comesBack === 'unknown' ? [`whether it comes back at boot is unknown: ${boot.because}`] : []),
		...(service.preset === 'enabled' ? ['its preset is enabled: a package upgrade may enable it again'] : []),
		...(service.needsReload ? ['its unit file changed since it was loaded: what runs is the old definition'] : []),
		...(service.loadState === 'not-found' ? ['its unit file is gone: once stopped it cannot be started again'] : []),
		...(service.stopLimitMs === null ? ['it has no stop limit of its own: the wait here ends after 5 min 45 s'] : []),
	];
}

/** The way back, the last thing undone first. */
function inverse(unit: string, blocks: readonly BootBlock[], running: boolean): string | null {
	if (running && blocks.length === 1 && blocks[0]?.id === 'disable')
		return show(['systemctl', 'enable', '--now', '--', unit]);
	const back = [
		...blocks.toReversed().map(block => block.inverse),
		...(running ? [show(['systemctl', 'start', '--', unit])] : []),
	];
	return back.length > 0 ? back.join('; ') : null;
}

/** The last word of the name, without the kind of unit: `vllm-kimi-k25-int4.service` → `int4`. */
function confirmWord(unit: string): string {
	return (
		unit
			.replace(/\.[a-z]+$/, '')
			.split(/[-_@:.]/)
			.filter(Boolean)
			.pop() ?? unit
	);
}

function stopped(
	unit: string,
	pids: readonly number[],
	cards: ReadonlySet<string>,
	situation: Situation,
	since: number,
): Verdict {
	const {facts, nowMs} = situation;
	const service = fresh(facts.services)?.units.find(each => each.unit === unit);
	const holders = fresh(facts.holders);
	if (!service || !holders) return {state: 'pending', words: 'waiting for a good look at services and GPU holders'};
	const state = runState(service);
	if (state === 'stuck') {
		const frozen = fresh(facts.processes)?.processes.filter(each => service.pids.includes(each.pid) && isFrozen(each));
		const why = frozen?.length ? heldBack(frozen) : `pid ${service.pids.join(', ')} cannot end until its I/O returns`;
		return {
			state: 'failed',
			words: `${unit} is ${service.activeState}, with processes that outlive SIGKILL: ${why}`,
		};
	}
	if (state !== 'stopped' && state !== 'stopped by force')
		return {state: 'pending', words: `${unit} is ${state}${countdown(service, nowMs - since)}`};
	if (service.pids.length > 0)
		return {state: 'pending', words: `pid ${service.pids.join(', ')} still in its control group`};
	const left = holders.holders.filter(holder => pids.includes(holder.pid));
	if (left.length > 0)
		return {state: 'pending', words: `GPU memory still held by pid ${left.map(holder => holder.pid).join(', ')}`};
	const memory = memoryBack(cards, situation);
	if (memory) return {state: 'pending', words: memory};
	const boot = bootVerdict(service);
	if (boot.comesBack === 'yes')
		return {state: 'failed', words: `stopped, but it comes back at boot: ${boot.because.join('; ')}`};
	if (boot.comesBack === 'unknown')
		return {state: 'failed', words: `stopped; whether it comes back at boot is unknown: ${boot.because}`};
	return {state: 'met', words: `${unit} is ${state}, not wanted at boot, its GPU memory free`};
}

/** systemd ends by force what does not end by itself: when, as far as it can be told from here. */
function countdown({activeState, stopLimitMs}: Service, waitedMs: number): string {
	if (activeState !== 'deactivating' || stopLimitMs === null) return '';
	return `, ended by force in ${Math.max(0, Math.round((stopLimitMs - waitedMs) / 1_000))} s at the latest`;
}

function cardsHeldBy(pids: readonly number[], facts: Situation['facts']): ReadonlySet<string> {
	const mine = fresh(facts.holders)?.holders.filter(holder => pids.includes(holder.pid)) ?? [];
	return new Set(mine.flatMap(holder => holder.memory.map(each => each.gpuUuid)));
}

/** Memory comes back only when the last address space is torn down: seconds to a minute after the process is gone. */
function memoryBack(cards: ReadonlySet<string>, {facts, target}: Situation): string | null {
	if (hasNoCards(facts, target)) return null;
	const gpus = fresh(facts.gpus);
	if (!gpus) return 'waiting for a good look at the cards';
	const full = gpus.cards.filter(card => cards.has(card.uuid) && !memoryIsBack(card));
	return full.length > 0 ? `memory not yet back on card ${full.map(card => card.index).join(', ')}` : null;
}
