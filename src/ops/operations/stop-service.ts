import {show} from '../command.ts';
import {fresh} from '../facts.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import type {Service} from '../probes/services.ts';
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

	plan({unit}, {facts}) {
		const services = fresh(facts.services);
		const service = services?.units.find(each => each.unit === unit);
		if (!service) return refuse(`${unit} has not been seen on this host, or the last look failed`);
		if (!needsStopping(service)) return refuse(`${unit} is stopped and does not come back at boot`);
		const boot = bootVerdict(service);
		const running = runState(service) !== 'stopped';
		const cards = cardsHeldBy(service.pids, facts);
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
				...(running
					? [
							{
								kind: 'run' as const,
								id: 'stop',
								says: `stop ${unit} (without waiting, so that a lost link changes nothing)`,
								script: show(['systemctl', 'stop', '--no-block', '--', unit]),
								limitMs: 20_000,
							},
						]
					: []),
				...(boot.comesBack === 'yes'
					? [
							{
								kind: 'run' as const,
								id: 'disable',
								says: `take ${unit} out of the boot`,
								script: show(['systemctl', 'disable', '--', unit]),
								limitMs: 30_000,
							},
						]
					: []),
				{
					kind: 'wait',
					id: 'gone',
					says: 'until it is inactive, its processes are gone, its GPU memory is free and nothing wants it at boot',
					looks: ['services', 'holders', 'gpus', 'processes'],
					limitMs: (service.stopLimitMs ?? 300_000) + GRACE_MS,
					until: situation => stopped(unit, service.pids, cards, situation),
				},
			],
			warnings: boot.comesBack === 'yes' ? boot.because.map(why => `comes back at boot: ${why}`) : [],
			inverse: show(['systemctl', 'enable', '--now', '--', unit]),
		};
	},
};

const needsStopping = (service: Service): boolean =>
	runState(service) !== 'stopped' || bootVerdict(service).comesBack === 'yes';

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

function stopped(unit: string, pids: readonly number[], cards: ReadonlySet<string>, {facts}: Situation): Verdict {
	const service = fresh(facts.services)?.units.find(each => each.unit === unit);
	const holders = fresh(facts.holders);
	if (!service || !holders) return {state: 'pending', words: 'waiting for a good look at services and GPU holders'};
	const state = runState(service);
	if (state === 'stuck')
		return {
			state: 'failed',
			words: `${unit} is ${service.activeState}, with processes that outlive SIGKILL: pid ${service.pids.join(', ')} cannot end until its I/O returns`,
		};
	if (state !== 'stopped' && state !== 'stopped by force') return {state: 'pending', words: `${unit} is ${state}`};
	if (service.pids.length > 0)
		return {state: 'pending', words: `pid ${service.pids.join(', ')} still in its control group`};
	const left = holders.holders.filter(holder => pids.includes(holder.pid));
	if (left.length > 0)
		return {state: 'pending', words: `GPU memory still held by pid ${left.map(holder => holder.pid).join(', ')}`};
	const memory = memoryBack(cards, facts);
	if (memory) return {state: 'pending', words: memory};
	const boot = bootVerdict(service);
	if (boot.comesBack === 'yes')
		return {state: 'failed', words: `stopped, but it comes back at boot: ${boot.because.join('; ')}`};
	if (boot.comesBack === 'unknown')
		return {state: 'failed', words: `stopped; whether it comes back at boot is unknown: ${boot.because}`};
	return {state: 'met', words: `${unit} is ${state}, not wanted at boot, its GPU memory free`};
}

function cardsHeldBy(pids: readonly number[], facts: Situation['facts']): ReadonlySet<string> {
	const mine = fresh(facts.holders)?.holders.filter(holder => pids.includes(holder.pid)) ?? [];
	return new Set(mine.flatMap(holder => holder.memory.map(each => each.gpuUuid)));
}

/** Memory comes back only when the last address space is torn down: seconds to a minute after the process is gone. */
function memoryBack(cards: ReadonlySet<string>, facts: Situation['facts']): string | null {
	const gpus = fresh(facts.gpus);
	if (!gpus) return 'waiting for a good look at the cards';
	const full = gpus.cards.filter(card => cards.has(card.uuid) && !memoryIsBack(card));
	return full.length > 0 ? `memory not yet back on card ${full.map(card => card.index).join(', ')}` : null;
}
