import {quote} from '../command.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {readShow, spanMs} from '../formats/systemctl-show.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

export {bootVerdict, maskRefused, runState} from './service-verdicts.ts';

/** Units that matter here: those that own GPU holders, those configured as unwanted, those that name the model or GPUs. */
export type ServiceFacts = {
	/** `absent`: pid 1 is not systemd or there is no systemctl. `silent`: no bus. Then `units` is what unit files tell. */
	readonly manager: 'systemd' | 'absent' | 'silent';
	readonly units: readonly Service[];
};

export type Service = {
	readonly unit: string;
	readonly loadState: string;
	readonly activeState: string;
	readonly subState: string;
	readonly result: string;
	readonly mainPid: number;
	readonly controlGroup: string;
	readonly unitFileState: string;
	readonly preset: string;
	readonly fragmentPath: string;
	readonly dropInPaths: readonly string[];
	readonly wantedBy: readonly string[];
	/** Targets with a link to it where packages put theirs, which `disable` leaves alone. They may have one below /etc, too. */
	readonly wantedOutside: readonly string[];
	/** RequiredBy and UpheldBy: who cannot be up without it. */
	readonly requiredBy: readonly string[];
	readonly triggeredBy: readonly string[];
	readonly restart: string;
	readonly restarts: number;
	/** ms; null is "infinity" or not told. */
	readonly stopLimitMs: number | null;
	readonly job: string;
	readonly needsReload: boolean;
	readonly execStart: string;
	readonly description: string;
	/** Pids in the unit's cgroup now. */
	readonly pids: readonly number[];
	readonly unwanted: boolean;
};

/** Does it run now, in one word for people and one for decisions. */
export type RunState =
	| 'running'
	| 'starting'
	| 'will start again'
	| 'stopping'
	| 'stopped'
	| 'stopped by force'
	| 'stuck'
	| 'unknown';

/** Does it come back at the next boot, and why. */
export type BootVerdict =
	| {readonly comesBack: 'yes'; readonly because: readonly string[]}
	| {readonly comesBack: 'no'; readonly notes: readonly string[]}
	| {readonly comesBack: 'unknown'; readonly because: string};

const PROPERTIES = [
	'Id',
	'Description',
	'LoadState',
	'ActiveState',
	'SubState',
	'Result',
	'MainPID',
	'ControlGroup',
	'UnitFileState',
	'UnitFilePreset',
	'FragmentPath',
	'DropInPaths',
	'WantedBy',
	'RequiredBy',
	'UpheldBy',
	'TriggeredBy',
	'Restart',
	'NRestarts',
	'TimeoutStopUSec',
	'Job',
	'NeedDaemonReload',
	'ExecStart',
] as const;

/** Names under which model servers are installed. */
const TELLING = ['*vllm*', '*sglang*', '*ollama*', '*triton*', '*tgi*', '*comfy*'].map(name => `${name}.service`);
const MOST_UNITS = 64;
const MOST_CHARACTERS = 480;
const SECTIONS = ['listed', 'files', 'show', 'links', 'groups'] as const;
/** Where packages put unit files; one place under two names on most hosts. */
const VENDOR = 'usr/lib lib usr/local/lib';

/**
 * Patterns are expanded by systemd itself, then all units are shown in one request, in one order of lines or another; pids
 * come from each unit's own cgroup. Without a bus the unit files alone tell. Exit status means little here (1 is also "no
 * bus"): words decide. Source: systemctl of systemd 252; fixtures/systemctl.
 */
export const services: Probe<ServiceFacts> = {
	id: 'services',
	lane: 'services',
	everyMs: 5000,
	paceMs: ({manager}) => (manager === 'absent' ? 60_000 : 5_000),
	limitMs: 20_000,
	capBytes: 1_048_576,
	script: ({target, hints}) => {
		const patterns = [...new Set([...target.unwanted, ...TELLING])].map(quote).join(' ');
		const named = fitting(hints.units.map(quote));
		return [
			DEFINE_MARK,
			'export SYSTEMD_PAGER=cat SYSTEMD_COLORS=0; set -f',
			's() { timeout -k 1 5 systemctl --no-pager --no-ask-password "$@" 2>&1; }',
			`l=$(s list-units --all --plain --no-legend --full ${patterns}); r=$?; ${mark('listed')}; echo "$r"; pr "$l"`,
			`o=; case $r in 124|137|127) ;; 0) ;; *) o=--root=/ ;; esac`,
			`case $r in 124|137|127) f= ;; *) f=$(s $o list-unit-files --no-legend --full ${patterns}) ;; esac; ${mark('files')}; pr "$f"`,
			`u=; [ $r = 0 ] && u=$(printf '%s\\n' "$l" "$f" ${named} | cut -d' ' -f1 | grep -v '@\\.' | grep -E '\\.(service|timer|socket|path|scope)$' | sort -u | head -n ${MOST_UNITS})`,
			`h=; [ "$u" ] && h=$(s show -p ${PROPERTIES.join(',')} -- $u); ${mark('show')}; pr "$h"; ${mark('links')}`,
			`set +f; for d in ${VENDOR}; do for x in $u; do echo "$ETC/../$d"/systemd/system/*.wants/$x; done; done; ${mark('groups')}`,
			'pr "$h" | sed -n "s/^ControlGroup=//p" | while IFS= read -r g; do [ "$g" ] || continue; for d in "$SYS/fs/cgroup$g" "$SYS/fs/cgroup/systemd$g"; do [ -r "$d/cgroup.procs" ] || continue; echo "$g" $(find "$d" -name cgroup.procs -exec cat {} + 2>/dev/null); break; done; done; true',
		].join('\n');
	},
	parse: parseServices,
};

/** Scripts stay small: as many names as fit. */
function fitting(names: readonly string[]): string {
	let text = '';
	for (const name of names) {
		if (text.length + name.length > MOST_CHARACTERS) break;
		text = `${text} ${name}`;
	}
	return text;
}

function parseServices(answer: Answer, {target, hints}: ProbeContext<ServiceFacts>): ServiceFacts {
	const sections = readSections('systemctl', answer.stdout, SECTIONS);
	const [status = '', ...listed] = sections.listed.split('\n');
	const unwanted = matcher(target.unwanted);
	const units = [...new Set([...hints.units])];
	if (status.trim() !== '0') {
		const words = listed.join('\n');
		const absent = status.trim() === '127' || /not been booted with systemd/i.test(words);
		const known = sections.files
			.split('\n')
			.map(fromUnitFile)
			.filter(unit => unit !== null);
		return {
			manager: absent ? 'absent' : 'silent',
			units: known.map(unit => ({...unit, unwanted: unwanted(unit.unit)})),
		};
	}
	const pids = readGroups(sections.groups);
	const links = readLinks(sections.links);
	const shown = readShow(sections.show)
		.filter(block => block.has('Id'))
		.map(block => toService(block, pids, links))
		.filter(unit => unit.loadState !== 'not-found' || unit.activeState !== 'inactive' || units.includes(unit.unit));
	return {manager: 'systemd', units: shown.map(unit => ({...unit, unwanted: unwanted(unit.unit)}))};
}

/** One unit from its properties, whatever their order; what an older systemd does not print is empty. */
export function toService(
	block: ReadonlyMap<string, string>,
	pids: ReadonlyMap<string, readonly number[]> = new Map(),
	links: ReadonlyMap<string, readonly string[]> = new Map(),
): Service {
	const text = (key: string) => block.get(key) ?? '';
	const words = (key: string) =>
		text(key)
			.split(' ')
			.filter(word => word !== '');
	return {
		unit: text('Id'),
		loadState: text('LoadState'),
		activeState: text('ActiveState'),
		subState: text('SubState'),
		result: text('Result'),
		mainPid: Number(text('MainPID')) || 0,
		controlGroup: text('ControlGroup'),
		unitFileState: text('UnitFileState'),
		preset: text('UnitFilePreset'),
		fragmentPath: text('FragmentPath'),
		dropInPaths: words('DropInPaths'),
		wantedBy: words('WantedBy'),
		wantedOutside: links.get(text('Id')) ?? [],
		requiredBy: [...words('RequiredBy'), ...words('UpheldBy')],
		triggeredBy: words('TriggeredBy'),
		restart: text('Restart'),
		restarts: Number(text('NRestarts')) || 0,
		stopLimitMs: spanMs(text('TimeoutStopUSec')),
		job: text('Job') === '0' ? '' : text('Job'),
		needsReload: text('NeedDaemonReload') === 'yes',
		execStart: text('ExecStart'),
		description: text('Description'),
		pids: pids.get(text('ControlGroup')) ?? [],
		unwanted: false,
	};
}

/** A row of list-unit-files: `NAME STATE PRESET`; everything else of the unit is not known without the manager. */
function fromUnitFile(line: string): Service | null {
	const [unit = '', state = '', preset = ''] = line.trim().split(/\s+/);
	if (!/\.(service|timer|socket|path)$/.test(unit) || state === '' || unit.includes('@.')) return null;
	return toService(
		new Map([
			['Id', unit],
			['UnitFileState', state],
			['UnitFilePreset', preset === '-' ? '' : preset],
		]),
	);
}

/** `/etc/../usr/lib/systemd/system/TARGET.wants/UNIT …`; a pattern that found nothing comes back as it is. */
function readLinks(text: string): ReadonlyMap<string, readonly string[]> {
	const links = new Map<string, readonly string[]>();
	for (const [, target = '', unit = ''] of text.matchAll(/\/([^/*\s]+)\.wants\/(\S+)/g))
		links.set(unit, [...new Set([...(links.get(unit) ?? []), target])]);
	return links;
}

/** `GROUP PID PID …` per line. */
function readGroups(text: string): ReadonlyMap<string, readonly number[]> {
	const groups = new Map<string, readonly number[]>();
	for (const line of text.split('\n')) {
		const match = /^(\/.*?)((?: \d+)*)$/.exec(line);
		if (!match) continue;
		const pids = (match[2] ?? '').split(' ').filter(pid => pid !== '');
		groups.set(
			match[1] ?? '',
			pids.map(Number).sort((a, b) => a - b),
		);
	}
	return groups;
}

/** Unit names against patterns with `*` and `?`. */
function matcher(patterns: readonly string[]): (unit: string) => boolean {
	const all = patterns.map(pattern => {
		const body = pattern
			.replace(/[.+^${}()|[\]\\]/g, '\\$&')
			.replaceAll('*', '.*')
			.replaceAll('?', '.');
		return new RegExp(`^${body}(\\.service)?$`);
	});
	return unit => all.some(pattern => pattern.test(unit));
}
