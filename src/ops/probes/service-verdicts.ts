import type {BootVerdict, RunState, Service} from './services.ts';

/**
 * Does a unit run now. `MainPID=0` is not "stopped" (it may start again in a second), and a stop that had to kill ends as
 * `failed`. `stuck`: processes outlived even SIGKILL, so killing again changes nothing.
 */
export function runState(service: Service): RunState {
	const {activeState, subState, result, pids, job} = service;
	switch (activeState) {
		case 'active':
		case 'reloading':
		case 'refreshing':
			return 'running';
		case 'activating':
			return subState === 'auto-restart' ? 'will start again' : 'starting';
		case 'deactivating':
			return subState === 'final-sigkill' ? 'stuck' : 'stopping';
		case 'failed':
			if (pids.length > 0) return 'stuck';
			return result === 'timeout' ? 'stopped by force' : 'stopped';
		case 'inactive':
			return job === '' ? 'stopped' : 'starting';
		default:
			return 'unknown';
	}
}

const BLOCK = /\/50-blocked\.conf$/;

/**
 * Does a unit come back at the next boot: another question than "is it enabled", since links, triggers and requiring units
 * bring back what is disabled. Not seen from here: cron, container restart policies, shell profiles.
 */
export function bootVerdict(service: Service): BootVerdict {
	const {unitFileState, loadState, fragmentPath} = service;
	const block = service.dropInPaths.find(path => BLOCK.test(path));
	if (block) return {comesBack: 'no', notes: [`blocked by ${block}`]};
	if (loadState === 'masked' && unitFileState !== 'masked-runtime') return {comesBack: 'no', notes: ['masked']};
	if (unitFileState === 'masked') return {comesBack: 'no', notes: ['masked']};
	if (loadState === 'not-found') return {comesBack: 'no', notes: goneNotes(service)};
	if (unitFileState === 'transient') return {comesBack: 'no', notes: ['started by hand (transient)']};
	const because = reasons(service);
	if (because.length > 0) return {comesBack: 'yes', because};
	if (unitFileState === '' && fragmentPath.startsWith('/run/'))
		return {comesBack: 'no', notes: ['its unit file is in /run, which a boot empties']};
	if (unitFileState === '') return {comesBack: 'unknown', because: 'systemd does not tell the state of its unit file'};
	if (unitFileState === 'bad') return {comesBack: 'unknown', because: 'its unit file cannot be read'};
	return {comesBack: 'no', notes: notes(service)};
}

function reasons({unitFileState, wantedBy, requiredBy, triggeredBy}: Service): readonly string[] {
	const because: string[] = [];
	if (unitFileState === 'enabled' || unitFileState === 'alias') because.push(unitFileState);
	if (unitFileState === 'generated') because.push('generated at each boot');
	/** Links made for this boot only end with it, and so do the dependencies they made. */
	if (unitFileState !== 'enabled-runtime') {
		because.push(...wantedBy.map(unit => `wanted by ${unit}`), ...requiredBy.map(unit => `required by ${unit}`));
	}
	because.push(...triggeredBy.map(unit => `started by ${unit}`));
	return because;
}

const goneNotes = ({activeState}: Service): readonly string[] =>
	activeState === 'inactive' ? ['no such unit'] : ['its unit file is gone; what runs ends with this boot'];

function notes({unitFileState, preset, restart, activeState}: Service): readonly string[] {
	const said: string[] = [];
	if (unitFileState === 'enabled-runtime') said.push('enabled for this boot only');
	if (unitFileState === 'masked-runtime') said.push('masked for this boot only');
	if (unitFileState === 'static') said.push('only starts when another unit asks for it');
	if (preset === 'enabled') said.push('its preset is enabled: a package upgrade or `preset-all` enables it again');
	if (restart === 'always' && activeState !== 'inactive') said.push('restarts by itself until it is stopped');
	return said;
}

/** Why `mask` is no way to hold this unit, in words; null when it would work. */
export function maskRefused({fragmentPath, unitFileState, loadState}: Service): string | null {
	if (fragmentPath.startsWith('/etc/systemd/system/'))
		return 'its file is in /etc/systemd/system: mask is refused there, and a runtime mask has no effect';
	if (unitFileState === 'masked-runtime' && loadState === 'loaded') return 'the runtime mask has no effect';
	return null;
}
