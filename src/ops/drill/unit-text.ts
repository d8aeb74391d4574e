import {constants} from 'node:os';
import {show} from '../command.ts';
import type {Unit} from './unit.ts';

/** `systemctl show` of one unit, every property, in an order that is systemd's and not the asker's. */
export function showText(unit: Unit): string {
	const {definition} = unit;
	const [program = '', ...rest] = definition.execStart;
	const running = unit.active === 'active';
	const properties: Record<string, string> = {
		Type: 'simple',
		Restart: definition.restart,
		RestartUSec: duration(definition.restartMs),
		TimeoutStartUSec: '1min 30s',
		TimeoutStopUSec: duration(definition.stopLimitMs),
		MainPID: String(unit.mainPid),
		ControlPID: '0',
		NRestarts: String(unit.restarts),
		ExecMainStartTimestamp: stamp(unit.activeSince),
		ExecMainPID: String(unit.residents[0]?.pid ?? 0),
		ExecMainCode: String(unit.exitCode),
		ExecMainStatus: String(unit.exitStatus),
		ExecStart: `{ path=${program} ; argv[]=${show([program, ...rest])} ; ignore_errors=no ; start_time=[${stamp(unit.activeSince) || 'n/a'}] ; stop_time=[n/a] ; pid=${unit.mainPid} ; code=(null) ; status=0/0 }`,
		Slice: 'system.slice',
		ControlGroup: unit.running && unit.sub !== 'auto-restart' ? unit.cgroup : '',
		Delegate: 'no',
		KillMode: 'control-group',
		KillSignal: String(constants.signals.SIGTERM),
		SendSIGKILL: 'yes',
		Result: unit.result,
		Id: unit.name,
		Names: unit.name,
		Requires: 'sysinit.target system.slice',
		RequiredBy: '',
		UpheldBy: '',
		WantedBy: unit.wantedBy.join(' '),
		Conflicts: 'shutdown.target',
		TriggeredBy: unit.timer?.name ?? '',
		Description: definition.description,
		LoadState: unit.masked ? 'masked' : 'loaded',
		ActiveState: unit.active,
		SubState: unit.sub,
		FragmentPath: definition.fragment ?? `/run/systemd/transient/${unit.name}`,
		DropInPaths: unit.loadedDropIns.join(' '),
		UnitFileState: unit.fileState,
		UnitFilePreset: definition.fragment === null ? '' : 'enabled',
		ActiveEnterTimestamp: running ? stamp(unit.activeSince) : '',
		InactiveExitTimestamp: stamp(unit.activeSince),
		CanStart: 'yes',
		CanStop: 'yes',
		...(unit.job ? {Job: String(unit.job.id)} : {}),
		NeedDaemonReload: unit.dropIns.join(' ') === unit.loadedDropIns.join(' ') ? 'no' : 'yes',
		Transient: definition.fragment === null ? 'yes' : 'no',
		ConditionResult: 'yes',
		InvocationID: unit.invocation.replaceAll('-', ''),
		CollectMode: definition.collect ? 'inactive-or-failed' : 'inactive',
	};
	return lines(properties);
}

/** What `show` says of a unit that does not exist: success throughout, which is why LoadState has to be read. */
export const MISSING_TEXT = lines({
	Type: 'simple',
	Restart: 'no',
	RestartUSec: '100ms',
	TimeoutStopUSec: '1min 30s',
	MainPID: '0',
	NRestarts: '0',
	ExecMainCode: '0',
	ExecMainStatus: '0',
	ControlGroup: '',
	KillMode: 'control-group',
	Result: 'success',
	Id: '@UNIT@',
	Names: '@UNIT@',
	RequiredBy: '',
	WantedBy: '',
	TriggeredBy: '',
	Description: '@UNIT@',
	LoadState: 'not-found',
	ActiveState: 'inactive',
	SubState: 'dead',
	FragmentPath: '',
	DropInPaths: '',
	UnitFileState: '',
	UnitFilePreset: '',
	NeedDaemonReload: 'no',
	Transient: 'no',
});

export const MANAGER_TEXT = lines({
	Version: '252.39-1~deb12u1',
	Virtualization: 'lxc',
	Architecture: 'x86-64',
	SystemState: 'running',
	NJobs: '0',
	NFailedUnits: '0',
	DefaultTimeoutStopUSec: '1min 30s',
});

/** A target has no processes; it is here because units hang on it. */
export const targetText = (name: string, description: string, wants: readonly string[]): string =>
	lines({
		Id: name,
		Names: name,
		Wants: wants.join(' '),
		WantedBy: '',
		RequiredBy: '',
		TriggeredBy: '',
		Description: description,
		LoadState: 'loaded',
		ActiveState: 'active',
		SubState: 'active',
		FragmentPath: `/lib/systemd/system/${name}`,
		DropInPaths: '',
		UnitFileState: 'static',
		UnitFilePreset: 'disabled',
		NeedDaemonReload: 'no',
	});

export const timerText = (name: string, unit: string): string =>
	lines({
		Id: name,
		Names: name,
		WantedBy: 'timers.target',
		RequiredBy: '',
		TriggeredBy: '',
		Triggers: unit,
		Description: `Starts ${unit} now and then`,
		LoadState: 'loaded',
		ActiveState: 'active',
		SubState: 'waiting',
		FragmentPath: `/usr/lib/systemd/system/${name}`,
		DropInPaths: '',
		UnitFileState: 'enabled',
		UnitFilePreset: 'enabled',
		NeedDaemonReload: 'no',
	});

function lines(properties: Readonly<Record<string, string>>): string {
	return Object.entries(properties)
		.map(([key, value]) => `${key}=${value}\n`)
		.join('');
}

function duration(ms: number): string {
	if (ms < 1_000) return `${ms}ms`;
	const minutes = Math.floor(ms / 60_000);
	const seconds = (ms % 60_000) / 1_000;
	return [minutes ? `${minutes}min` : '', seconds ? `${seconds}s` : ''].filter(Boolean).join(' ');
}

function stamp(atMs: number | null): string {
	if (atMs === null) return '';
	const at = new Date(atMs);
	const day = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][at.getUTCDay()];
	return `${day} ${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
