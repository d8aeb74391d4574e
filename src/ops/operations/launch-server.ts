import {quote} from '../command.ts';
import {fresh} from '../facts.ts';
import {importedPackage} from '../hook/package-flags.ts';
import {serverDumps} from '../hook/server-dumps.ts';
import {preflight, standing} from '../preflight/preflight.ts';
import {type LaunchRecord, lastStartPath, provedPath} from '../probes/server.ts';
import {CANARY_LIMIT_MS, canary} from '../server/canary.ts';
import {noteStart, spell, stallLimitMs} from '../server/last-start.ts';
import {type GuardedLine, guardedLine} from '../server/protections.ts';
import type {DumpConfig, ExtractionConfig, ServerConfig} from '../target.ts';
import {type Launch, recordScript, startScript} from './launch-script.ts';
import {
	type Operation,
	type Plan,
	type PlanTarget,
	type Refusal,
	refuse,
	type Situation,
	type Step,
	type Verdict,
} from './operation.ts';

/** From the launch to ready over all phases; each phase has its own limit in the configuration. */
const START_LIMIT_MS = 60 * 60_000;

export const launchServer: Operation<Record<string, never>> = {
	id: 'launch-server',
	title: 'launch the patched server and watch it come up',
	tier: 2,
	defaultInput: () => ({}),

	plan(_, situation) {
		if (!situation.target.server) return refuse(NOT_CONFIGURED);
		if (unprovedNow(situation)) return launchPlan(situation);
		const {against} = standing('launch', situation);
		return against.length > 0 ? refuse(against.join('; ')) : launchPlan(situation);
	},
};

const NOT_CONFIGURED = 'no server is configured (server: in relight.yaml)';

/** The plan as it will be once nothing stands against it: what a recovery shows before its first step. */
export function launchPlan(situation: Situation): Plan | Refusal {
	const {target, facts, nowMs} = situation;
	const {server, dump} = target;
	if (!server) return refuse(NOT_CONFIGURED);
	const launched = unprovedNow(situation);
	if (launched) return watchPlan(server, launched, situation);
	const manager = fresh(facts.services)?.manager === 'systemd' ? 'systemd' : 'none';
	const guarded = guardedFor(situation, server);
	const launch = launchOf({...server, args: guarded.args}, dump?.dir ?? null, nowMs, manager);
	return {
		operation: 'launch-server',
		title: `launch ${server.model} on port ${server.port}`,
		tier: 2,
		confirmWord: server.name.split(/[-_.]/).pop() ?? server.name,
		targets: [{kind: 'host', identity: target.name, says: `${target.name}  log ${launch.log}`}],
		excluded: cards(situation),
		steps: [
			{
				kind: 'run',
				id: 'start',
				says: 'start it on its own, with a log of its own',
				script: startScript(launch, manager),
				limitMs: 30_000,
			},
			{
				kind: 'run',
				id: 'record',
				says: 'leave a record of which process this launch is',
				script: recordScript(launch, manager),
				limitMs: 20_000,
			},
			...comingUp(server, {launchId: String(launch.record.launchId), log: launch.log}, situation),
		],
		warnings: [...guarded.changes, ...warnings(situation)],
		inverse: manager === 'systemd' ? `systemctl stop ${launch.unit}` : 'end it with the signal picker',
	};
}

/**
 * Our own launch that is on its way, or is up and not proved yet: a console or a link that died meanwhile changes nothing
 * about it. While an extraction works on it nothing more need be asked.
 */
function unprovedNow({facts, target}: Situation): LaunchRecord | null {
	const now = fresh(facts.server);
	if (now?.process !== 'alive' || now.phase === 'dead' || fresh(facts.extraction)?.run?.alive) return null;
	const up = now.phase === 'ready' || now.phase === 'serving';
	return up && (now.proved || !target.dump) ? null : now.record;
}

/** A server that is there is watched and proved as if this console had launched it; a second one is never started. */
function watchPlan(server: ServerConfig, record: LaunchRecord, situation: Situation): Plan {
	const {pid, log} = record;
	const {target} = situation;
	return {
		operation: 'launch-server',
		title: `watch the server that was launched (pid ${pid}) come up on port ${server.port}, and prove it`,
		tier: 2,
		confirmWord: server.name.split(/[-_.]/).pop() ?? server.name,
		targets: [{kind: 'host', identity: target.name, says: `${target.name}  log ${log}`}],
		excluded: cards(situation),
		steps: comingUp(server, record, situation),
		warnings: warnings(situation),
		inverse: null,
	};
}

type Started = Pick<LaunchRecord, 'launchId' | 'log'>;

/** From a start to the proof that it dumps. */
function comingUp(server: ServerConfig, start: Started, {target}: Situation): Step[] {
	const {launchId} = start;
	const {dump, extraction} = target;
	return [
		{
			kind: 'wait',
			id: 'ready',
			says: 'until it says that it is ready, phase by phase',
			looks: ['server', 'gpus'],
			limitMs: START_LIMIT_MS,
			until: here => ready(server, launchId, here),
		},
		...(start.log === '' ? [] : [noteStep(server, start)]),
		...(dump ? [canaryStep(server, dump, extraction, launchId), provedStep(server, launchId)] : []),
		{
			kind: 'wait',
			id: 'serving',
			says: 'until a last look shows it alive and ready',
			looks: ['server', 'holders'],
			limitMs: 30_000,
			until: here => ready(server, launchId, here),
		},
	];
}

/** So that the next start can be held against this one. */
const noteStep = (server: ServerConfig, start: Started): Step => ({
	kind: 'run',
	id: 'note',
	says: 'note beside the record how long each phase of the start took, and how the cards are linked',
	script: noteStart(start, lastStartPath(server)),
	limitMs: 15_000,
});

/** So that another console, later, need not ask again. */
const provedStep = (server: ServerConfig, launchId: string): Step => ({
	kind: 'run',
	id: 'proved',
	says: 'note beside the record that this launch is proved',
	script: `printf '%s\\n' ${quote(launchId)} >${quote(provedPath(server))}`,
	limitMs: 10_000,
});

function canaryStep(server: ServerConfig, dump: DumpConfig, extraction: ExtractionConfig | null, id: string): Step {
	const {script, program} = canary({
		server,
		dumps: serverDumps(server),
		dumpDir: dump.dir,
		hiddenSize: extraction?.hiddenSize ?? 7_168,
		maxTokens: extraction?.maxTokens ?? 8_192,
		id,
	});
	return {
		kind: 'run',
		id: 'canary',
		says: 'send two real requests, a short and a long one, and check all of their dumps',
		script,
		program,
		limitMs: CANARY_LIMIT_MS,
	};
}

/** The operator's line, with what whole states need. As it is where nothing is dumped, or the configuration says so. */
function guardedFor({target, facts}: Situation, {args, protect = false}: ServerConfig): GuardedLine {
	return protect && target.dump ? guardedLine(args, target, importedPackage(facts)) : {args, changes: []};
}

/** argv and environment stay arrays to the end; only quote() makes them text. */
export function launchOf(
	server: ServerConfig,
	dumpDir: string | null,
	nowMs: number,
	manager: 'systemd' | 'none',
): Launch {
	const launchId = nowMs.toString(36);
	const unit = `${server.name}-${launchId}`;
	const argv = [
		server.python,
		'-m',
		'sglang.launch_server',
		'--model-path',
		server.model,
		...server.args,
		'--port',
		String(server.port),
	];
	const log = `${server.log}/${unit}.log`;
	return {
		unit,
		argv,
		env: server.env,
		log,
		directories: dumpDir ? [dumpDir] : [],
		recordPath: `${server.log}/relight-launch-${server.name}.json`,
		record: {launchId, unit: manager === 'systemd' ? `${unit}.service` : null, port: server.port, argv, log, at: nowMs},
	};
}

/** What a launch should know and does not stop at, and what would have stopped it but for a person. */
const warnings = (situation: Situation): string[] => [
	...preflight(situation)
		.filter(({blocks, state, stops}) => blocks === 'launch' && !stops && (state === 'warn' || state === 'unknown'))
		.flatMap(({evidence}) => evidence),
	...standing('launch', situation).overridden,
];

function cards({facts}: Situation): PlanTarget[] {
	return (fresh(facts.gpus)?.lost ?? []).map(card => ({
		kind: 'path',
		identity: card.busId,
		says: `card ${card.busId}: ${card.says}`,
	}));
}

function ready(server: ServerConfig, launchId: string, {facts, nowMs}: Situation): Verdict {
	const seen = fresh(facts.server);
	if (!seen || seen.record?.launchId !== launchId)
		return {state: 'pending', words: 'waiting for a good look at the new server'};
	const shards = seen.shards ? ` ${seen.shards.done}/${seen.shards.total} shards` : '';
	if (seen.failure)
		return {
			state: 'failed',
			words: `${seen.failure.class}: ${seen.failure.line.replace(/\.$/, '')}. ${seen.failure.advice}`,
		};
	if (seen.process !== 'alive')
		return {
			state: 'failed',
			words: `the server is ${seen.process} in phase ${seen.phase}; its log ends: ${seen.tail.at(-1) ?? '(empty)'}`,
		};
	if (seen.phase === 'ready' || seen.phase === 'serving')
		return {state: 'met', words: `ready (pid ${seen.record.pid})`};
	const lastMs = seen.lastStart?.phaseMs[seen.phase];
	const last = lastMs === undefined ? '' : ` · last time ${spell(lastMs)}`;
	if (seen.phaseSince !== null && nowMs - seen.phaseSince > stallLimitMs(server.phaseLimitMs, lastMs)) {
		return {
			state: 'failed',
			words: `no progress in phase ${seen.phase}${shards} for ${Math.round((nowMs - seen.phaseSince) / 1_000)} s${last}`,
		};
	}
	return {state: 'pending', words: `${seen.phase}${shards}${last}`};
}
