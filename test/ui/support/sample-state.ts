import type {Facts, FactValues, Reading} from '../../../src/ops/facts.ts';
import type {Target} from '../../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';
import type {ConsoleState, ViewState} from '../../../src/state/state.ts';
import {initialState} from '../../../src/state/store.ts';
import {NOW, sampleFacts, UNIT} from './sample-facts.ts';

const MINUTE = 60_000;

export const sampleTarget: Target = {
	name: 'kpro6/ct129',
	routes: [
		{ssh: 'root@gpu', through: null, identityFile: null, knownHostsFile: null, environment: SYSTEM_ENVIRONMENT},
		{
			ssh: 'root@pve',
			through: ['pct', 'exec', '129', '--'],
			identityFile: null,
			knownHostsFile: null,
			environment: SYSTEM_ENVIRONMENT,
		},
	],
	expect: {
		gpus: 8,
		mounts: [
			{path: '/data', type: 'ceph', source: null, volume: null, freeBytes: null},
			{path: '/shared', type: null, source: null, volume: null, freeBytes: null},
		],
	},
	unwanted: ['vllm-*.service'],
	server: {
		python: '/root/ml-env/bin/python3',
		tree: '/root/sglang',
		model: '/shared/kimi-k2.5-int4',
		port: 8000,
		env: {SGLANG_HS_DUMP_DIR: '/dev/shm/sglang_hs'},
		args: ['--tp-size', '8'],
		log: '/data/eagle3/synth_100k/logs',
		name: 'kimi',
		phaseLimitMs: 900_000,
	},
	dump: {dir: '/dev/shm/sglang_hs', limitBytes: null},
	extraction: {
		dataset: '/data/eagle3/synth_100k/merged.json',
		records: 37_312,
		tokens: 87_700_000,
		output: '/data/eagle3/synth_100k/hidden_states',
		layout: 'legacy',
		groupSize: 2000,
		hiddenSize: 7168,
		maxTokens: 8192,
		overlength: 'truncate',
		concurrency: 4,
		progress: '/data/eagle3/synth_100k/hidden_states/progress.json',
		script: null,
		program: ['relight', 'extract'],
		config: null,
		log: '/data/eagle3/synth_100k/logs/extraction2.log',
		confirmMs: 60_000,
	},
	files: [],
};

export const ROOMY = {kind: 'answered' as const, totalBytes: 1e13, availableBytes: 6e12, inodes: 9, inodesFree: 9};
const dataset = {role: 'dataset' as const, state: 'present' as const, bytes: 9, sha256: null, volatile: false};

/** What no operation could mend is in order: mounts that answer and have room, the dataset in its place. */
export const SOUND = {
	mounts: {...sampleFacts.mounts, mounts: sampleFacts.mounts.mounts.map(mount => ({...mount, size: ROOMY}))},
	files: {
		...sampleFacts.files,
		files: [...sampleFacts.files.files, {...dataset, path: sampleTarget.extraction?.dataset ?? ''}],
	},
};

export const heard = <T>(value: T, ageMs = 600): Reading<T> => ({
	turn: 1,
	last: {value, at: NOW - ageMs, startedAt: NOW - ageMs - 50},
	failing: null,
});

export function factsOf(values: Partial<FactValues>): Facts {
	const read = <K extends keyof FactValues>(id: K): Reading<FactValues[K]> | null => {
		const value = values[id];
		return value === undefined ? null : heard<FactValues[K]>(value);
	};
	return {
		gpus: read('gpus'),
		holders: read('holders'),
		processes: read('processes'),
		'command-lines': read('command-lines'),
		mounts: read('mounts'),
		services: read('services'),
		topology: read('topology'),
		autostart: read('autostart'),
		acting: read('acting'),
		'kernel-log': read('kernel-log'),
		server: read('server'),
		extraction: read('extraction'),
		log: read('log'),
		files: read('files'),
		contents: read('contents'),
		flags: read('flags'),
		guest: null,
	};
}

/** The incident, with everything in order that a recovery could not mend. */
export const mendableState = (): ConsoleState => sampleState({facts: factsOf({...sampleFacts, ...SOUND})});

/** All probes of the incident answered 0.6 s ago; `view` and anything else may be changed. */
export function sampleState(
	change: Partial<Omit<ConsoleState, 'view'>> & {view?: Partial<ViewState>} = {},
): ConsoleState {
	const {view, ...rest} = change;
	const fresh = initialState(
		sampleTarget,
		{mode: 'live', operator: 'ops1', from: 'laptop', token: 'own-token', readOnly: false, own: null},
		NOW - 20 * MINUTE,
	);
	const looks = Array.from({length: 300}, (_, index) => index);
	const at = looks.map(index => NOW - (299 - index) * 2_000);
	const card = (index: number) =>
		[
			`GPU-${index}`,
			{
				busyPercent: looks.map(look => (look < 20 ? (look * 7 + index * 11) % 100 : 0)),
				usedFraction: looks.map(() => 0.79),
			},
		] as const;
	return {
		...fresh,
		nowMs: NOW,
		session: {...fresh.session, recording: 'ok'},
		route: {
			state: 'up',
			label: 'ssh root@pve pct exec 129',
			since: NOW - 14 * MINUTE,
			passedOver: [{label: 'ssh root@gpu', reason: 'no answer in 5 s', at: NOW - 14_000}],
		},
		facts: factsOf(sampleFacts),
		history: {at, gpus: new Map(looks.slice(0, 8).map(card))},
		alerts: [
			{
				id: 'held-idle',
				level: 'critical',
				words: `8 GPUs held at 0% by ${UNIT}`,
				remedy: 'stop and disable the unit (o 1)',
				since: NOW - 11 * MINUTE,
				acknowledged: false,
				pane: 'gpu',
			},
			{
				id: 'hung:/data',
				level: 'critical',
				words: '/data hung, python pid 9120 in D',
				remedy: 'bring the storage back, nothing here can end that wait',
				since: NOW - 252_000,
				acknowledged: false,
				pane: 'mounts',
			},
			{
				id: 'script',
				level: 'warning',
				words: 'extraction script is gone from /tmp',
				remedy: 'restore files (o 6)',
				since: NOW - 15 * MINUTE,
				acknowledged: true,
				pane: 'extraction',
			},
		],
		journal: [
			{
				at: NOW - 686_000,
				kind: 'route',
				level: 'warning',
				words: 'ssh root@gpu: no answer in 5 s, now by pct exec 129',
				command: null,
			},
			{at: NOW - 633_000, kind: 'alert', level: 'warning', words: `${UNIT} is active and enabled`, command: null},
			{at: NOW - 504_000, kind: 'alert', level: 'critical', words: '/data does not answer', command: null},
			{
				at: NOW - 253_000,
				kind: 'session',
				level: 'info',
				words: 'ops1 acknowledged: extraction script is gone',
				command: null,
			},
			{
				at: NOW - 100_000,
				kind: 'step',
				level: 'ok',
				words: 'looked at the unit',
				command: `systemctl status -- ${UNIT}`,
			},
		],
		...rest,
		view: {...fresh.view, ...view},
	};
}
