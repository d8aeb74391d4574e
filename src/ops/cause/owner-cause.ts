import {type Facts, fresh} from '../facts.ts';
import type {BootContainer, BootLine} from '../probes/autostart.ts';
import {identityKey} from '../probes/probe.ts';
import type {Owner, Process} from '../probes/processes.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import type {Service} from '../probes/services.ts';
import {redact} from '../redact.ts';
import {startedBy} from './ancestors.ts';
import {type CauseLink, cannotTell, link} from './cause.ts';

/** What keeps a process, whether that comes back at boot and why, and what mends it for good. */
export function causeOfOwner(process: Process, ancestors: readonly Process[], facts: Facts): readonly CauseLink[] {
	const {owner} = process;
	switch (owner.kind) {
		case 'unit':
			return causeOfUnit(owner.unit, facts);
		case 'user-unit':
			return [
				link('owner', `${owner.unit}, a unit of user ${owner.uid}`),
				cannotTell('boot', 'whether it comes back is unknown: it starts at boot only if that user lingers'),
				link('fix', `systemctl --user -M ${owner.uid}@ disable --now ${owner.unit}`),
			];
		case 'container':
			return causeOfContainer(owner, facts);
		case 'guest':
			return [
				link('owner', `guest ${owner.guest}${owner.unit ? `, there ${owner.unit}` : ''}`),
				cannotTell('boot', 'what starts it is known inside that guest alone'),
			];
		case 'session':
		case 'none':
			return causeOfHand(process, ancestors, facts);
		case 'unknown':
			return [cannotTell('owner', 'what keeps it is unknown: its control group was not read yet, or may not be read')];
	}
}

function causeOfUnit(name: string, facts: Facts): readonly CauseLink[] {
	const services = fresh(facts.services);
	const unit = services?.units.find(each => each.unit === name);
	if (!unit)
		return [
			link('owner', name),
			cannotTell('boot', 'whether it comes back is unknown: the unit has not been seen, or the last look failed'),
		];
	const restarts = unit.restarts > 0 ? `, restarted ${unit.restarts} times` : '';
	const owner = link('owner', `${unit.unit} ${runState(unit)}, Restart=${unit.restart || 'no'}${restarts}`);
	return [owner, ...bootOfUnit(unit)];
}

function bootOfUnit(unit: Service): readonly CauseLink[] {
	const boot = bootVerdict(unit);
	switch (boot.comesBack) {
		case 'yes':
			return [
				...boot.because.map(why => link('boot', `comes back at boot: ${why}`, 'critical')),
				link('note', 'a kill alone returns at the next boot'),
				link('fix', 'stop it and keep it from the boot: stop-service'),
			];
		case 'unknown':
			return [cannotTell('boot', `whether it comes back is unknown: ${boot.because}`)];
		case 'no':
			return [
				link('boot', ['does not come back at boot', ...boot.notes].join('; '), 'good'),
				link('fix', 'stop it: stop-service'),
			];
	}
}

const COMES_BACK = new Set(['always', 'unless-stopped']);

function causeOfContainer({engine, id}: Extract<Owner, {kind: 'container'}>, facts: Facts): readonly CauseLink[] {
	const containers = fresh(facts.autostart)?.containers ?? null;
	const short = id.slice(0, 12);
	const found: BootContainer | undefined = containers?.find(each => each.id.startsWith(id));
	const owner = link('owner', `${engine} ${short}${found?.name ? ` (${found.name})` : ''}`);
	if (!found)
		return [
			owner,
			cannotTell(
				'boot',
				containers === null
					? 'whether it comes back is unknown: no container engine answered'
					: 'the engine does not know this container: its processes outlived it',
			),
			link('fix', `stop it with its engine: ${engine} stop ${short}`),
		];
	if (!COMES_BACK.has(found.policy))
		return [
			owner,
			link('boot', `restart policy "${found.policy}": does not come back at boot`, 'good'),
			link('fix', `${engine} stop ${short}`),
		];
	return [
		owner,
		link('boot', `comes back at boot: restart policy "${found.policy}"`, 'critical'),
		link('fix', `${engine} update --restart=no ${short} && ${engine} stop ${short}`),
	];
}

/** No unit and no container: somebody started it, or it outlived what did. */
function causeOfHand(process: Process, ancestors: readonly Process[], facts: Facts): readonly CauseLink[] {
	const starter = startedBy(ancestors);
	const session = process.owner.kind === 'session' ? `login session ${process.owner.session}` : null;
	const orphan = process.parentPid === 1 && session === null;
	const words = starter
		? `started from ${starter.how} (pid ${starter.by.pid})${session ? `, ${session}` : ''}`
		: (session ??
			(orphan ? 'an orphan: its parent ended, and no unit or container keeps it' : 'no unit or container keeps it'));
	const seen = fresh(facts.autostart);
	if (!seen)
		return [
			link('owner', words),
			cannotTell('boot', 'what starts it at boot is unknown: cron and rc.local were not read'),
		];
	const naming = seen.lines.filter(line => names(line, process, facts));
	return [
		link('owner', words),
		...(naming.length > 0
			? naming.map(({file, line}) => link('boot', `comes back at boot: ${file}: ${redact(line)}`, 'critical'))
			: [link('boot', 'nothing seen starts it at boot (units, cron @reboot, rc.local)', 'good')]),
		link(
			'fix',
			naming.length > 0 ? `take the line out of ${naming[0]?.file}, then end it` : 'end it: free-gpus, or a signal',
		),
	];
}

/** Whether a boot line names the script or program that this process runs, by its whole path or its file name. */
function names({line}: BootLine, process: Process, facts: Facts): boolean {
	const command = facts['command-lines']?.last?.value.lines.get(identityKey(process));
	const words = (command ?? '').split(' ').filter(word => word.includes('/') || /\.(py|sh|js)$/.test(word));
	const telling = words.map(word => word.slice(word.lastIndexOf('/') + 1)).filter(word => !INTERPRETERS.test(word));
	return telling.some(word => word.length > 3 && line.split(/[\s/'"=;&|]+/).includes(word));
}

const INTERPRETERS = /^(python[\d.]*|node|sh|bash|dash|env|nohup|setsid)$/;
