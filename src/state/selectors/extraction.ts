import type {ExtractionFacts, ExtractionRun, Inventory} from '../../ops/probes/extraction.ts';
import {mountOf} from '../../ops/probes/mount-of.ts';
import type {ServerFacts, ServerPhase} from '../../ops/probes/server.ts';
import type {ExtractionConfig} from '../../ops/target.ts';
import type {ConsoleState} from '../state.ts';
import {derive} from './derive.ts';
import {type Face, face, type Level} from './face.ts';
import {selectMounts} from './mounts.ts';
import {factsOnScreen, nowOnScreen} from './on-screen.ts';

export type ExtractionGroup = {
	readonly key: string;
	readonly name: string;
	readonly present: number;
	/** How many this group holds when it is whole: the last one may be shorter. */
	readonly expected: number;
	readonly state: 'full' | 'holes' | 'growing' | 'untouched';
	readonly bytes: number;
	readonly newestMs: number | null;
	readonly selected: boolean;
};

export type ExtractionPaneModel = {
	readonly face: Face;
	readonly configured: boolean;
	/** One word: extracting, stalled, finished … */
	readonly state: string;
	readonly level: Level;
	readonly present: number | null;
	readonly expected: number | null;
	readonly fraction: number | null;
	readonly holes: number;
	readonly firstHole: string | null;
	readonly suspects: number;
	readonly firstSuspect: string | null;
	readonly quarantined: number;
	readonly temporaries: number;
	readonly bytes: number | null;
	readonly bytesPerSample: number | null;
	/** For the samples that are still missing, at the size of those that are there. */
	readonly neededBytes: number | null;
	readonly freeBytes: number | null;
	readonly run: ExtractionRun | null;
	readonly lastSampleMs: number | null;
	readonly groups: readonly ExtractionGroup[];
	readonly dumps: {readonly count: number; readonly bytes: number} | null;
	readonly script: ExtractionFacts['script'] | null;
	readonly server: ServerWords | null;
};

/** No new file for this long, while a run says that it works, is a stall. */
const STALLED_MS = 5 * 60_000;

export const selectExtraction: (state: ConsoleState) => ExtractionPaneModel = derive(
	[
		state => factsOnScreen(state).extraction,
		state => factsOnScreen(state).server?.last?.value ?? null,
		state => state.target.extraction,
		nowOnScreen,
		state => selectMounts(state).rows,
		state => state.view.selected.extraction,
	],
	(reading, server, config, nowMs, mounts, selected) => {
		const facts = reading?.last?.value ?? null;
		const inventory = facts?.inventory ?? null;
		const run = facts?.run ?? null;
		const expected = inventory?.expected ?? config?.records ?? null;
		const lastSampleMs = inventory?.newestAt ? Math.max(0, nowMs - inventory.newestAt) : null;
		const perSample = inventory && inventory.present > 0 ? inventory.bytes / inventory.present : null;
		return {
			face: face('extraction', reading, nowMs),
			configured: config !== null,
			...stateOf(inventory, run, expected, lastSampleMs),
			present: inventory?.present ?? null,
			expected,
			fraction: inventory && expected ? inventory.present / expected : null,
			...troubleOf(inventory),
			bytes: inventory?.bytes ?? null,
			bytesPerSample: perSample,
			neededBytes:
				inventory && expected !== null && perSample !== null
					? Math.max(0, expected - inventory.present) * perSample
					: null,
			freeBytes: config ? (mountOf(config.output, mounts)?.availableBytes ?? null) : null,
			run,
			lastSampleMs,
			groups: groupsOf(inventory, config, expected, nowMs, selected),
			dumps: facts?.dumps
				? {count: facts.dumps.length, bytes: facts.dumps.reduce((sum, dump) => sum + dump.bytes, 0)}
				: null,
			script: facts?.script ?? null,
			server: server ? serverWords(server) : null,
		};
	},
);

/** What a run writes at its end: with any other state it did not come to that. */
const LAST_WORDS: ReadonlySet<ExtractionRun['state']> = new Set(['finished', 'stopped', 'failed']);

function stateOf(
	inventory: Inventory | null,
	run: ExtractionRun | null,
	expected: number | null,
	lastSampleMs: number | null,
): {state: string; level: Level} {
	const whole = inventory && expected !== null && inventory.present >= expected && inventory.suspects.length === 0;
	if (whole) return {state: 'complete', level: 'good'};
	if (run === null) return inventory === null ? {state: 'unknown', level: 'dim'} : {state: 'no run', level: 'warn'};
	if (run.alive === false && !LAST_WORDS.has(run.state)) return {state: 'run is gone', level: 'bad'};
	if (run.state === 'failed') return {state: 'failed', level: 'bad'};
	if (run.state === 'silent') return {state: 'silent', level: 'bad'};
	if (run.state === 'extracting' && lastSampleMs !== null && lastSampleMs > STALLED_MS)
		return {state: 'stalled', level: 'bad'};
	if (run.state === 'extracting') return {state: 'extracting', level: 'good'};
	return {state: run.state, level: run.state === 'finished' || run.state === 'stopped' ? 'warn' : 'plain'};
}

function troubleOf(inventory: Inventory | null) {
	const holes = inventory?.holes ?? [];
	const [first] = holes;
	const [suspect] = inventory?.suspects ?? [];
	return {
		holes: holes.reduce((sum, [from, to]) => sum + to - from + 1, 0),
		firstHole: first ? (first[0] === first[1] ? `${first[0]}` : `${first[0]}-${first[1]}`) : null,
		suspects: inventory?.suspects.length ?? 0,
		firstSuspect: suspect ? `${suspect.index}: ${suspect.reason}` : null,
		quarantined: inventory?.quarantined ?? 0,
		temporaries: inventory?.temporaries ?? 0,
	};
}

function groupsOf(
	inventory: Inventory | null,
	config: ExtractionConfig | null,
	expected: number | null,
	nowMs: number,
	selected: string | null,
): readonly ExtractionGroup[] {
	const groups = inventory?.groups ?? [];
	const newest = groups.reduce((latest, group) => Math.max(latest, group.newestAt ?? 0), 0);
	const chosen = groups.some(({name}) => name === selected) ? selected : (groups.at(-1)?.name ?? null);
	return groups.map(group => {
		const size =
			Math.max(0, Math.min(group.to, expected ?? group.to) - group.from) || config?.groupSize || group.present;
		const growing = group.newestAt !== null && group.newestAt === newest;
		return {
			key: group.name,
			name: group.name,
			present: group.present,
			expected: size,
			state: group.present >= size ? 'full' : group.present === 0 ? 'untouched' : growing ? 'growing' : 'holes',
			bytes: group.bytes,
			newestMs: group.newestAt === null ? null : Math.max(0, nowMs - group.newestAt),
			selected: group.name === chosen,
		};
	});
}

const PHASES: Record<ServerPhase, {words: string; level: Level}> = {
	none: {words: 'not running', level: 'warn'},
	arguments: {words: 'starting: reading arguments', level: 'plain'},
	distributed: {words: 'starting: distributed init', level: 'plain'},
	loading: {words: 'starting: loading weights', level: 'plain'},
	memory: {words: 'starting: KV cache', level: 'plain'},
	http: {words: 'starting: HTTP', level: 'plain'},
	ready: {words: 'ready', level: 'good'},
	serving: {words: 'serving', level: 'good'},
	dead: {words: 'dead', level: 'bad'},
	unknown: {words: 'unknown', level: 'dim'},
};

/** `lastMs`: how long the last start took for the phase that this one is in. */
export type ServerWords = {readonly words: string; readonly level: Level; readonly lastMs?: number};

export function serverWords(server: ServerFacts): ServerWords {
	const {words, level} = PHASES[server.phase];
	if (server.failure) return {words: `dead: ${server.failure.class}`, level: 'bad'};
	if (server.process === 'wrapper only') return {words: 'dead under a live wrapper', level: 'bad'};
	const shards = server.phase === 'loading' && server.shards ? ` ${server.shards.done}/${server.shards.total}` : '';
	const lastMs = server.lastStart?.phaseMs[server.phase];
	return {words: `${words}${shards}`, level, ...(words.startsWith('starting') && lastMs !== undefined && {lastMs})};
}
