import {fresh} from '../facts.ts';
import {standing} from '../preflight/preflight.ts';
import type {ExtractionFacts, ExtractionRun, Inventory} from '../probes/extraction.ts';
import type {ExtractionConfig, Target} from '../target.ts';
import {type Launch, recordScript, startScript} from './launch-script.ts';
import {isRefusal, type Operation, type Plan, type Refusal, refuse, type Situation, type Verdict} from './operation.ts';
import {sendExtractor} from './send-extractor.ts';

export const runExtractor: Operation<Record<string, never>> = {
	id: 'run-extractor',
	title: 'run the resumable extractor',
	tier: 1,
	defaultInput: () => ({}),

	plan(_, situation) {
		const {target, facts} = situation;
		const {extraction} = target;
		if (!extraction) return refuse(NOT_CONFIGURED);
		const seen = fresh(facts.extraction);
		if (!seen?.inventory) return refuse(NOT_SEEN);
		if (seen.run?.alive) return refuse(`an extraction is already running (pid ${seen.run.pid})`);
		if (extraction.script && seen.script !== 'present')
			return refuse(`${extraction.script.destination} is gone: restore it first`);
		const server = fresh(facts.server);
		if (target.server && !(server?.process === 'alive' && (server.phase === 'ready' || server.phase === 'serving'))) {
			return refuse(
				`the server is not ready (${server ? `${server.process}, ${server.phase}` : 'not seen'}): launch it first`,
			);
		}
		const {inventory} = seen;
		if (inventory.expected !== null && inventory.complete >= inventory.expected)
			return refuse(`all ${inventory.expected} samples are there`);
		const {against} = standing('extraction', situation);
		return against.length > 0 ? refuse(against.join('; ')) : extractorPlan(situation);
	},
};

const NOT_CONFIGURED = 'no extraction is configured (extraction: in relight.yaml)';
const NOT_SEEN = 'the output tree has not been seen yet, or the last look failed';

/** The plan as it will be once nothing stands against it: what a recovery shows before its first step. */
export function extractorPlan({target, facts, nowMs}: Situation): Plan | Refusal {
	const {extraction} = target;
	const inventory = fresh(facts.extraction)?.inventory;
	if (!extraction) return refuse(NOT_CONFIGURED);
	if (!inventory) return refuse(NOT_SEEN);
	const manager = fresh(facts.services)?.manager === 'systemd' ? 'systemd' : 'none';
	const adopts = extraction.script === null && inventory.present > 0 && isWithoutManifest(facts);
	const sent =
		extraction.script || extraction.program ? null : sendExtractor({target, facts, nowMs}, adopts ? ['--adopt'] : []);
	if (sent && isRefusal(sent)) return sent;
	const launch = extractorLaunch(target, extraction, nowMs, manager, sent?.argv ?? null, adopts);
	const before = {present: inventory.present, newestAt: inventory.newestAt ?? 0};
	return {
		operation: 'run-extractor',
		title: `resume the extraction: ${inventory.complete} of ${inventory.expected ?? 'unknown'} whole, ${inventory.suspects.length} suspect`,
		tier: 1,
		confirmWord: target.name,
		targets: [{kind: 'path', identity: extraction.output, says: `${extraction.output}  ${inventory.present} files`}],
		excluded: inventory.suspects.map(each => ({
			kind: 'path',
			identity: each.path,
			says: `${each.path}: ${each.reason}; not counted as done`,
		})),
		steps: [
			...(sent?.steps ?? []),
			{
				kind: 'run',
				id: 'start',
				says: 'start it on its own, so that it outlives this console',
				script: startScript(launch, manager),
				limitMs: 30_000,
			},
			{
				kind: 'run',
				id: 'record',
				says: 'leave a record of which process it is',
				script: recordScript(launch, manager),
				limitMs: 20_000,
			},
			{
				kind: 'wait',
				id: 'new-file',
				says: 'until a new file appears and proves whole',
				looks: ['extraction'],
				limitMs: 30 * 60_000,
				until: here => newFile(before, here),
			},
			{
				kind: 'wait',
				id: 'motion',
				says: `until it has been seen moving for ${Math.round(extraction.confirmMs / 1_000)} s`,
				looks: ['extraction', 'server'],
				limitMs: extraction.confirmMs + 120_000,
				until: (here, since) => moving(extraction, before, here, since),
			},
		],
		warnings: [
			...(adopts
				? [`there is no manifest: all ${inventory.present} files are looked at, and the tree is taken over`]
				: []),
			...(inventory.holes.length > 0 ? [`holes: ${holesInWords(inventory.holes)}`] : []),
		],
		inverse: 'stop it with the stop-extractor operation; it finishes the sample in flight',
	};
}

function extractorLaunch(
	target: Target,
	extraction: ExtractionConfig,
	nowMs: number,
	manager: 'systemd' | 'none',
	sent: readonly string[] | null,
	adopts: boolean,
): Launch {
	const launchId = nowMs.toString(36);
	const unit = `relight-extraction-${launchId}`;
	const {script, program, config} = extraction;
	const argv =
		script && target.server
			? [target.server.python, script.destination, ...script.argv]
			: (sent ?? [
					...(program ?? []),
					'extract',
					...(config ? ['--config', config] : []),
					...(adopts ? ['--adopt'] : []),
				]);
	return {
		unit,
		argv,
		env: {PYTHONUNBUFFERED: '1'},
		log: extraction.log,
		directories: [],
		recordPath: `${extraction.log}.launch.json`,
		mayEnd: true,
		record: {launchId, unit: manager === 'systemd' ? `${unit}.service` : null, argv, log: extraction.log, at: nowMs},
	};
}

const holesInWords = (holes: readonly (readonly [from: number, to: number])[]): string =>
	holes
		.map(([from, to]) => (from === to ? from : `${from}-${to}`))
		.slice(0, 8)
		.join(' ');

/** Files and no manifest: a tree of before, which the extractor takes over after a look at every file. */
const isWithoutManifest = (facts: Situation['facts']): boolean =>
	fresh(facts.files)?.files.find(({role}) => role === 'manifest')?.state === 'gone';

type Before = {readonly present: number; readonly newestAt: number};

const allThere = ({expected, complete}: Inventory): boolean => expected !== null && complete >= expected;

/**
 * A run says that it has finished, and what it wrote last has not been listed or read here: nothing is to be begun, for it
 * may be that nothing is left to do.
 */
export function isCatchingUp({inventory, run, listedAt}: ExtractionFacts): boolean {
	if (run?.state !== 'finished' || run.alive !== false || !inventory) return false;
	const {present, expected} = inventory;
	return expected !== null && present < expected ? isUnlisted(run, listedAt) : isUnread(inventory);
}

/** Files are there that have not been looked into. */
const isUnread = ({present, complete, suspects}: Inventory): boolean => present > complete + suspects.length;

/** What a run wrote last came after the newest listing. */
const isUnlisted = ({updatedAt}: ExtractionRun, listedAt: string): boolean =>
	updatedAt !== null && updatedAt >= Number(listedAt) * 1_000;

/**
 * A run that finished is no failure while what it wrote last has not been listed or read yet: the count of whole files lags
 * behind its own word.
 */
function endedEarly({inventory, run, listedAt}: ExtractionFacts): boolean {
	if (run?.state === 'failed') return true;
	if (run?.alive !== false || !inventory) return false;
	return !allThere(inventory) && !(run.state === 'finished' && (isUnread(inventory) || isUnlisted(run, listedAt)));
}

/** Both times are the host's own clock: ours may be off. */
function newFile(before: Before, {facts}: Situation): Verdict {
	const seen = fresh(facts.extraction);
	if (!seen?.inventory) return {state: 'pending', words: 'waiting for a good look at the output tree'};
	const {inventory, run} = seen;
	if (run && endedEarly(seen) && run.updatedAt !== null && run.updatedAt > before.newestAt) {
		return {state: 'failed', words: `the extractor ended (${run.state}): ${run.message ?? 'see its log'}`};
	}
	if (run?.alive === false && run.updatedAt !== null && run.updatedAt > before.newestAt && allThere(inventory))
		return {state: 'met', words: `it has finished: all ${inventory.expected} are there and whole`};
	const newest = inventory.groups
		.flatMap(group => [...group.files.values()])
		.filter(file => file.modifiedAt > before.newestAt);
	const whole = newest.filter(file => file.whole === true);
	if (whole.length === 0)
		return {state: 'pending', words: run ? `${run.state}, no new whole file yet` : 'no new whole file yet'};
	return {state: 'met', words: `${whole.length} new file(s) proved whole, the newest ${inventory.newestPath ?? ''}`};
}

function moving(extraction: ExtractionConfig, before: Before, {facts, nowMs}: Situation, since: number): Verdict {
	const seen = fresh(facts.extraction);
	if (!seen?.inventory) return {state: 'pending', words: 'waiting for a good look at the output tree'};
	const {run} = seen;
	if (run && endedEarly(seen))
		return {state: 'failed', words: `the extractor ended (${run.state}): ${run.message ?? 'see its log'}`};
	const fresher = seen.inventory.groups
		.flatMap(group => [...group.files.values()])
		.filter(file => file.modifiedAt > before.newestAt && file.whole).length;
	const rate = run?.samplesPerSecond?.toFixed(2) ?? '?';
	const eta = run?.etaMs ? `, ETA ${span(run.etaMs)}` : '';
	if (run?.alive === false && allThere(seen.inventory))
		return {state: 'met', words: `${fresher} new files, all ${seen.inventory.expected} are there: it has finished`};
	const words = `${fresher} new files, ${rate} samples/s, ${run?.errors ?? '?'} errors${eta}`;
	return nowMs - since >= extraction.confirmMs && fresher > 1 ? {state: 'met', words} : {state: 'pending', words};
}

/** `40-55 s`, `12-15 min`, `4.4-4.9 h`. */
function span({low, high}: {readonly low: number; readonly high: number}): string {
	const [unit, ms, digits] =
		high < 120_000
			? (['s', 1_000, 0] as const)
			: high < 7_200_000
				? (['min', 60_000, 0] as const)
				: (['h', 3_600_000, 1] as const);
	return `${(low / ms).toFixed(digits)}-${(high / ms).toFixed(digits)} ${unit}`;
}
