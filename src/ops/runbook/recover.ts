import {fresh, type Reading} from '../facts.ts';
import {hasNoCards} from '../no-cards.ts';
import {claimsOf, endablePids} from '../operations/claims.ts';
import {clearDumps} from '../operations/clear-dumps.ts';
import {freeGpus} from '../operations/free-gpus.ts';
import {launchPlan} from '../operations/launch-server.ts';
import type {Situation, Verdict} from '../operations/operation.ts';
import {restoreFiles, wantedFiles} from '../operations/restore-files.ts';
import {extractorPlan, isCatchingUp} from '../operations/run-extractor.ts';
import {stopService} from '../operations/stop-service.ts';
import {describe} from '../outcome.ts';
import {beyondMending} from '../preflight/preflight.ts';
import {memoryIsBack} from '../probes/held-memory.ts';
import {bootVerdict, runState} from '../probes/service-verdicts.ts';
import type {Check} from './runbook.ts';

/** The incident's recovery, in the order in which each step makes the next one possible. */
export const RECOVER: readonly Check[] = [
	{
		id: 'services',
		says: 'no unwanted service runs or comes back at boot',
		mends: 'stop-service',
		looks: ['services', 'holders', 'processes'],
		settleMs: 5_000,
		holds: servicesQuiet,
		plans: situation => unwantedUnits(situation).map(unit => stopService.plan({unit}, situation)),
	},
	{
		id: 'cards',
		says: 'every card answers and is free, or held by our own server',
		mends: 'free-gpus',
		looks: ['gpus', 'holders', 'processes', 'server'],
		settleMs: 90_000,
		holds: cardsFree,
		plans: situation => [freeGpus.plan({}, situation)],
	},
	{
		id: 'files',
		says: 'the extraction script and the other files are in place',
		mends: 'restore-files',
		looks: ['files', 'extraction'],
		settleMs: 5_000,
		holds: filesInPlace,
		plans: situation => [restoreFiles.plan({}, situation)],
	},
	{
		id: 'dumps',
		says: 'the dump directory holds no request of a dead server',
		mends: 'clear-dumps',
		looks: ['extraction', 'server'],
		settleMs: 5_000,
		holds: dumpsClear,
		plans: situation => [clearDumps.plan({}, situation)],
	},
	{
		id: 'server',
		says: 'the patched server is ready and dumps hidden states',
		mends: 'launch-server',
		looks: ['server', 'gpus', 'holders', 'services', 'mounts', 'files', 'contents'],
		settleMs: 5_000,
		holds: serverReady,
		plans: situation => [launchPlan(situation)],
	},
	{
		id: 'extraction',
		says: 'the extraction is running',
		mends: 'run-extractor',
		looks: ['extraction', 'server', 'mounts', 'contents'],
		settleMs: 5_000,
		holds: extractionRuns,
		plans: situation => [extractorPlan(situation)],
	},
];

/** What cannot be told, and why: the look's own words, and a mount that does not answer, since that is most often the cause. */
function unseen(what: string, {facts}: Situation, ...readings: readonly (Reading<unknown> | null)[]): Verdict {
	const failing = readings.find(reading => reading?.failing)?.failing;
	const hung = (fresh(facts.mounts)?.mounts ?? []).filter(mount => mount.size.kind === 'hung');
	const why = [
		failing ? describe(failing.failure) : 'no look has ended yet',
		...hung.map(mount => `${mount.path} does not answer`),
	];
	return {state: 'failed', words: `${what} not known: ${why.join('; ')}`};
}
const met = (words: string): Verdict => ({state: 'met', words});
const wrong = (words: string): Verdict => ({state: 'pending', words});

function unwantedUnits(situation: Situation): string[] {
	const {facts} = situation;
	const services = fresh(facts.services);
	const holders = endablePids(situation);
	const server = fresh(facts.server);
	const ours = server?.process === 'alive' ? server.record?.unit : null;
	return (services?.units ?? [])
		.filter(unit => unit.unit !== ours && (unit.unwanted || unit.pids.some(pid => holders.has(pid))))
		.filter(unit => runState(unit) !== 'stopped' || bootVerdict(unit).comesBack === 'yes')
		.map(unit => unit.unit);
}

function servicesQuiet(situation: Situation): Verdict {
	const services = fresh(situation.facts.services);
	if (!services) return unseen('services', situation, situation.facts.services);
	if (services.manager !== 'systemd') return met(`no service manager on this host (${services.manager})`);
	const units = unwantedUnits(situation);
	return units.length > 0 ? wrong(`${units.join(', ')} runs or comes back at boot`) : met('none runs, none comes back');
}

function cardsFree(situation: Situation): Verdict {
	const {facts} = situation;
	const gpus = fresh(facts.gpus);
	const claims = claimsOf(situation);
	const server = fresh(facts.server);
	if (hasNoCards(facts, situation.target)) return met('no cards on this host, none expected');
	if (!gpus) return unseen('cards', situation, facts.gpus);
	if (!claims) return unseen('who holds the cards is', situation, facts.holders, facts.processes);
	if (gpus.lost.length > 0)
		return {
			state: 'failed',
			words: `card lost: ${gpus.lost.map(card => card.busId).join(', ')}; no operation mends that`,
		};
	if (server?.process === 'alive') return met('held by our own server');
	const left = claims.filter(claim => claim.spared === null);
	if (left.length > 0) return wrong(`${left.length} process(es) hold cards`);
	const full = gpus.cards.filter(card => !memoryIsBack(card));
	if (full.length > 0)
		return wrong(
			`memory in use on card ${full.map(card => card.index).join(', ')} with no process to be seen that may be ended: it may come back late`,
		);
	return met(`${gpus.cards.length} cards free`);
}

function filesInPlace(situation: Situation): Verdict {
	const {facts, target} = situation;
	const wanted = wantedFiles(target);
	const seen = fresh(facts.files);
	if (wanted.length === 0) return met('none configured');
	if (!seen) return unseen('files', situation, facts.files);
	const missing = wanted.filter(file => seen.files.find(each => each.path === file.destination)?.state !== 'present');
	return missing.length > 0
		? wrong(`missing: ${missing.map(file => file.destination.slice(file.destination.lastIndexOf('/') + 1)).join(', ')}`)
		: met(`${wanted.length} in place`);
}

function dumpsClear(situation: Situation): Verdict {
	const {facts, target} = situation;
	if (!target.dump) return met('no dump directory configured');
	const dumps = fresh(facts.extraction)?.dumps;
	const server = fresh(facts.server);
	if (!dumps || !server) return unseen('dump directory', situation, facts.extraction, facts.server);
	if (server.process === 'alive') return met('the server is alive: its requests are its own');
	return dumps.length > 0 ? wrong(`${dumps.length} stale request(s)`) : met('empty');
}

function serverReady(situation: Situation): Verdict {
	const {facts, target} = situation;
	if (!target.server) return met('no server configured');
	const server = fresh(facts.server);
	if (!server) return unseen('server', situation, facts.server);
	if (server.process === 'alive' && (server.phase === 'ready' || server.phase === 'serving')) {
		const works = fresh(facts.extraction)?.run?.alive === true;
		if (target.dump && !server.proved && !works)
			return wrong(`${server.phase} (pid ${server.record?.pid}), but no request has proved that it dumps`);
		return met(`${server.phase} (pid ${server.record?.pid})`);
	}
	const against = server.process === 'alive' ? [] : beyondMending('launch', situation);
	if (against.length > 0) return {state: 'failed', words: against.join('; ')};
	return wrong(server.process === 'none' ? 'not launched' : `${server.process}, ${server.phase}`);
}

function extractionRuns(situation: Situation): Verdict {
	const {facts, target} = situation;
	if (!target.extraction) return met('no extraction configured');
	const seen = fresh(facts.extraction);
	if (!seen?.inventory) return unseen('output tree', situation, facts.extraction);
	const {inventory, run} = seen;
	const unread = inventory.present - inventory.complete - inventory.suspects.length;
	const count = `${inventory.complete}/${inventory.expected ?? '?'} whole${unread > 0 ? `, ${unread} not read yet` : ''}`;
	if (inventory.expected !== null && inventory.complete >= inventory.expected) return met(`${count}: complete`);
	if (run?.alive) return met(`${count}, ${run.state}`);
	if (isCatchingUp(seen))
		return {state: 'failed', words: `${count}: the run has finished, its last files are not seen yet`};
	const against = beyondMending('extraction', situation);
	if (against.length > 0) return {state: 'failed', words: against.join('; ')};
	return wrong(`${count}, nothing is running`);
}
