import {quote} from '../command.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {Complaint} from '../outcome.ts';
import type {ExtractionConfig} from '../target.ts';
import {capture, DEFINE_CAPTURE, memberOf, READ_STAT} from './capture.ts';
import {readDumps} from './dump-entries.ts';
import {readRun} from './extraction-run.ts';
import {filesToCheck, groupsToList, sampleNames, updateInventory} from './inventory.ts';
import type {Answer, Probe, ProbeContext} from './probe.ts';

/** The output tree and the run that fills it. Counts come from files, never from the highest index or a log. */
export type ExtractionFacts = {
	readonly inventory: Inventory | null;
	readonly run: ExtractionRun | null;
	/** Entries of the dump directory, `req_*` only. */
	readonly dumps: readonly {readonly name: string; readonly modifiedAt: number; readonly bytes: number}[] | null;
	readonly script: 'present' | 'gone' | 'no answer' | 'not configured';
	/** Host clock at the newest listing (epoch seconds, as text): directories changed since are listed again. */
	readonly listedAt: string;
};

export type Inventory = {
	readonly expected: number | null;
	/** Files under final names. */
	readonly present: number;
	/** Present and with an end record. */
	readonly complete: number;
	/** Indices below the highest present one that have no file; both ends are in. */
	readonly holes: readonly (readonly [from: number, to: number])[];
	readonly suspects: readonly {readonly index: number; readonly path: string; readonly reason: string}[];
	readonly groups: readonly InventoryGroup[];
	readonly bytes: number;
	readonly newestAt: number | null;
	readonly newestPath: string | null;
	readonly temporaries: number;
	readonly quarantined: number;
};

/** Indices from `from` up to `to`, which is not in. `modifiedAt` 0: seen, and to be listed with the next look. */
export type InventoryGroup = {
	readonly name: string;
	readonly from: number;
	readonly to: number;
	readonly modifiedAt: number;
	readonly present: number;
	readonly bytes: number;
	readonly newestAt: number | null;
	readonly temporaries: number;
	/** Files whose end record was not looked at yet. */
	readonly unchecked: number;
	/** Files by index, kept so that a later look asks only for groups that changed. */
	readonly files: ReadonlyMap<number, InventoryFile>;
};

/** `whole`: has an end record that fits; null: not looked at yet. `suspect` says why it is not. */
export type InventoryFile = {
	readonly bytes: number;
	readonly modifiedAt: number;
	readonly whole: boolean | null;
	readonly name: string;
	readonly suspect: string | null;
};

export type ExtractionRun = {
	readonly source: 'progress' | 'script log';
	readonly state:
		| 'starting'
		| 'verifying'
		| 'waiting for server'
		| 'extracting'
		| 'finished'
		| 'stopped'
		| 'failed'
		| 'silent';
	readonly pid: number | null;
	readonly startTicks: number | null;
	readonly alive: boolean | null;
	/** Extracted by this run alone; skips never count. */
	readonly extracted: number;
	readonly skipped: number | null;
	readonly errors: number;
	readonly tokens: number | null;
	readonly samplesPerSecond: number | null;
	readonly tokensPerSecond: number | null;
	readonly bytesPerSecond: number | null;
	readonly etaMs: {readonly low: number; readonly high: number} | null;
	readonly lastIndex: number | null;
	readonly updatedAt: number | null;
	readonly message: string | null;
};

const SECTIONS = [
	'clock',
	'groups',
	'files',
	'sizes',
	'tails',
	'quarantine',
	'dumps',
	'script',
	'stat',
	'progress',
	'log',
] as const;

/** A directory's time may still be that of the listing although a file came later in the same moment. */
const OVERLAP_SECONDS = 3;

/**
 * The tree is listed once; after that only directories that changed since the last listing, by the host's own clock. End
 * records of up to 400 unchecked files a look, newest first. A run's own progress file wins over the log of a foreign script.
 * A tree that does not answer is a Complaint. Source: findutils, `tail -v` of coreutils, the progress file of `relight
 * extract`; fixtures/extraction.
 */
export const extraction: Probe<ExtractionFacts> = {
	id: 'extraction',
	lane: 'files',
	everyMs: 2000,
	paceMs: ({run, inventory}) =>
		run?.alive || (inventory && inventory.complete + inventory.suspects.length < inventory.present) ? 2_000 : 5_000,
	limitMs: 60_000,
	capBytes: 67_108_864,
	script: context => {
		const {target, last, hints} = context;
		const config = target.extraction;
		if (config === null) return null;
		/** A tree that was not there before has no listing that a change could be measured against. */
		const first = last === null || last.inventory === null;
		const since = first ? '0' : String(Math.floor(Number(last.listedAt)) - OVERLAP_SECONDS);
		const named = groupsToList(last?.inventory ?? null);
		const checks = filesToCheck(last?.inventory ?? null, hints.nowMs);
		const names = sampleNames(config.layout);
		const directories = names.flat
			? '-maxdepth 0 -printf .'
			: "-mindepth 1 -maxdepth 1 -type d -name 'rows_*' -printf %f";
		const seconds = first ? 30 : 10;
		const changed = `case $g in *' n\n'*) pr "$g" | sed -n 's/ [^ ]* n$//p' ;; esac`;
		const list = capture(
			'g',
			seconds,
			`find "$o" ${directories} -printf ' %T@' \\( -newermt "@${since}" -printf ' n\\n' -o -printf '\\n' \\)`,
		);
		return [
			DEFINE_MARK,
			DEFINE_CAPTURE,
			`o=${quote(config.output)}; z() { timeout -k 1 ${seconds} "$@" 2>/dev/null; }; ${mark('clock')}; date +%s.%N`,
			first ? ifAnswers(list) : list,
			`${mark('groups')}; echo $r; case $r in 124|137) exit ;; esac; pr "$g"; k=; cd "$o" 2>/dev/null && k=1; ${mark('files')}`,
			`[ "$k" ] && { set -- ${named.join(' ')} $(${changed}); for d; do echo $d; done; [ $# = 0 ] || z find "$@" -mindepth 1 -maxdepth 1 -type f -printf '%h/%f %s %T@\\n'; }`,
			...checkScript(checks, names.flat),
			`${mark('quarantine')}; case $k$g in 1*' n\n'*) z find quarantine .quarantine -type f ! -name '*.json' -printf x; echo ;; esac`,
			`${mark('dumps')}; ${target.dump === null ? ':' : `z find ${quote(target.dump.dir)} -mindepth 1 -maxdepth 2 -path '*/req_*' -printf '%y %s %T@ %P\\n'; echo $?`}`,
			...runScript(config),
		].join('\n');
	},
	parse: parseExtraction,
};

/** A tree that was never listed may take long to list: one that does not answer at all is told from it within seconds. */
const ifAnswers = (list: string): string =>
	`${capture('g', 2, 'stat -f -c %S -- "$o"')}; case $r in 124|137) ;; *) ${list} ;; esac`;

/** Size, time and end of the next files to be checked; both sections stay empty when there are none. */
function checkScript(runs: readonly string[], flat: boolean): string[] {
	if (runs.length === 0) return [`${mark('sizes')}; ${mark('tails')}`];
	return [
		'n() { i=$1; while [ $i -le $2 ]; do echo "$3$i$4"; i=$((i+1)); done; }',
		`set -- $(${runs.join('; ')}); ${mark('sizes')}; [ "$k" ] && z find "$@" -maxdepth 0 -printf '%p %s %T@\\n'`,
		`${mark('tails')}; [ "$k" ] && z ${flat ? 'head -v -c 2048' : 'tail -v -c 22'} -- "$@"`,
	];
}

/** The script's presence and the progress file in one bounded read; the log of a foreign script only without the latter. */
function runScript({script, progress, log}: ExtractionConfig): string[] {
	const presence = script === null ? ':' : '[ -e "$1" ]';
	const read = `sh -c '${presence}; echo $?; head -c 65536 -- "$2"' - ${quote(script?.destination ?? '')} ${quote(progress)}`;
	const tail = `timeout -k 1 2 sh -c 'stat -L -c %Y -- "$1" && tail -c 16384 -- "$1"' - ${quote(log)} 2>/dev/null`;
	return [
		`${capture('j', 2, read)}; ${mark('script')}; case $r in 124|137) echo $r ;; *) pr "\${j%%\n*}" ;; esac; j=\${j#*\n}`,
		`${memberOf('p', 'j', 'pid')}; ${mark('stat')}; read -r b <"$PROC/sys/kernel/random/boot_id"; echo "$b"; ${READ_STAT}; pr "$c"`,
		`${mark('progress')}; pr "$j"`,
		`${mark('log')}; ${script === null ? ':' : `[ "$j" ] || ${tail}`}; true`,
	];
}

/** Counted whenever a directory changed: what goes into quarantine leaves one. Else the last count stands. */
function quarantinedIn(text: string, last: ExtractionFacts | null): number {
	return text === '' ? (last?.inventory?.quarantined ?? 0) : text.trim().length;
}

function parseExtraction(answer: Answer, context: ProbeContext<ExtractionFacts>): ExtractionFacts {
	const {target, last} = context;
	const config = target.extraction;
	if (config === null) throw new Error('an answer to a question that was not asked');
	/** End records are bytes; everything else here is ASCII or read as UTF-8 again. */
	const text = answer.bytes.toString('latin1');
	const [status = ''] = readSections('extraction', text, ['clock', 'groups']).groups.split('\n', 1);
	if (status === '124' || status === '137')
		throw new Complaint(
			'find',
			`no answer from ${config.output}`,
			'the output is on a mount that hangs: see the mounts',
		);
	const sections = readSections('extraction', text, SECTIONS);
	const clock = sections.clock.trim();
	const groups = sections.groups.slice(status.length + 1);
	/** No such directory: there is no inventory, which is another thing than an empty one. */
	const inventory =
		status === '0' || groups.trim() !== ''
			? updateInventory({
					config,
					before: last?.inventory ?? null,
					groups,
					files: sections.files,
					sizes: sections.sizes,
					tails: sections.tails,
					quarantined: quarantinedIn(sections.quarantine, last),
				})
			: null;
	const utf8 = (text: string) => Buffer.from(text, 'latin1').toString('utf8');
	return {
		inventory,
		run: readRun({
			progress: utf8(sections.progress),
			stat: sections.stat,
			log: utf8(sections.log),
			clockMs: Number(clock) * 1000,
			expected: config.records,
		}),
		dumps: target.dump === null ? null : readDumps(utf8(sections.dumps)),
		script: config.script === null ? 'not configured' : presenceOf(sections.script.trim()),
		listedAt: clock,
	};
}

function presenceOf(status: string): ExtractionFacts['script'] {
	if (status === '0') return 'present';
	/** No answer within the limit is not "gone": the path is on a mount that hangs. */
	return status === '124' || status === '137' ? 'no answer' : 'gone';
}
