import {dirname} from 'node:path';
import {launchFlags} from '../hook/launch-flags.ts';
import type {HookFacts} from '../hook/look.ts';
import {HOOK_SHA256, HOOK_TEXT} from '../hook/own.ts';
import type {RouteConfig, Target} from '../target.ts';
import {HIDDEN_SIZE, type Sums} from './build-data.ts';
import {write} from './build-host.ts';
import {type BoxPaths, boxPath} from './paths.ts';
import {type DatasetRecord, type Dimensions, MAX_TOKENS} from './records.ts';

export type BoxFacts = {
	readonly paths: BoxPaths;
	readonly records: readonly DatasetRecord[];
	readonly size: Dimensions;
	readonly directPort: number;
	readonly hypervisorPort: number;
	readonly serverPort: number;
	readonly sums: Sums;
};

/** What the console is given: the incident's configuration with the box's paths. */
export function boxTarget({paths, records, size, directPort, hypervisorPort, serverPort, sums}: BoxFacts): Target {
	const environment = {
		path: boxPath(paths),
		home: paths.home,
		proc: paths.proc,
		dev: paths.dev,
		sys: paths.sys,
		etc: paths.etc,
	};
	const route = (port: number, through: readonly string[] | null): RouteConfig => ({
		ssh: `root@127.0.0.1:${port}`,
		through,
		identityFile: paths.identity,
		knownHostsFile: paths.knownHosts,
		environment,
	});
	const mount = (path: string, type: string, freeBytes: number | null, source: string | null = null) => ({
		path,
		type,
		source,
		volume: null,
		freeBytes,
	});
	return {
		name: 'ct129',
		routes: [route(directPort, null), route(hypervisorPort, ['pct', 'exec', '129', '--'])],
		expect: {
			gpus: 8,
			mounts: [
				mount(paths.volume, 'ext4', 64e6, '/dev/nvme1n1p1'),
				mount(paths.shm, 'tmpfs', 16e6),
				mount(paths.share, 'nfs4', null),
			],
		},
		unwanted: ['vllm-*.service'],
		server: {
			python: paths.python,
			tree: paths.tree,
			model: paths.model,
			port: serverPort,
			env: {
				SGLANG_HS_DUMP_DIR: paths.dumps,
				SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN: '1',
				NCCL_PROTO: 'LL',
				NCCL_ALGO: 'Ring',
				NCCL_P2P_LEVEL: 'SYS',
				NCCL_MAX_NCHANNELS: '16',
				NCCL_BUFFSIZE: '16777216',
				NCCL_NTHREADS: '512',
			},
			args: [
				...['--trust-remote-code', '--tp-size', '8', '--mem-fraction-static', '0.88', '--host', '0.0.0.0'],
				...['--disable-cuda-graph', '--disable-radix-cache', '--disable-custom-all-reduce', '--log-level', 'info'],
			],
			// The line of the incident, word for word.
			protect: false,
			log: paths.logs,
			name: 'relight-server',
			phaseLimitMs: 60_000,
		},
		dump: {dir: paths.dumps, limitBytes: 64e6},
		extraction: {
			dataset: paths.dataset,
			records: records.length,
			tokens: records.reduce((sum, record) => sum + record.input_ids.length, 0),
			sha256: sums.datasetSha256,
			output: paths.output,
			layout: 'legacy',
			groupSize: size.groupSize,
			hiddenSize: HIDDEN_SIZE,
			maxTokens: MAX_TOKENS,
			overlength: 'truncate',
			concurrency: 1,
			progress: paths.progress,
			script: {
				source: paths.goodScript,
				destination: paths.script,
				sha256: sums.scriptSha256,
				mode: '644',
				argv: [
					'--prepared-data',
					paths.dataset,
					'--output-dir',
					paths.output,
					'--server-url',
					`http://127.0.0.1:${serverPort}`,
					'--max-seq-len',
					String(MAX_TOKENS),
				],
			},
			program: [`${paths.bin}/relight`],
			config: paths.config,
			log: paths.extractionLog,
			confirmMs: 4_000,
		},
		files: [],
	};
}

/** Of the model that the box has, as a look would find it. */
const MODEL = {architecture: 'KimiK25ForConditionalGeneration', layers: 61, hiddenSize: HIDDEN_SIZE};

/** The states come through relight_hs: its file is one to restore, its flags are those that `print-flags` prints. */
export function withHook(target: Target, paths: BoxPaths, version: string): Target {
	const {server, extraction} = target;
	if (!server || !extraction) return target;
	write(paths.goodHook, HOOK_TEXT, 0o644);
	const {SGLANG_HS_DUMP_DIR: _, ...env} = server.env;
	const unpatched = {...target, server: {...server, env}};
	const facts: HookFacts = {
		python: '',
		sglang: {directory: `${paths.tree}/python/sglang`, version, source: null, bytecode: null, flags: null, hooks: true},
		tree: null,
		hook: {importable: null, placed: null},
		model: MODEL,
		status: null,
	};
	const flags = launchFlags(unpatched, facts, {directory: dirname(paths.hook), staged: false});
	return {
		...target,
		server: {...server, env: {...env, ...Object.fromEntries(flags.env)}, args: [...server.args, ...flags.args.flat()]},
		extraction: {...extraction, concurrency: 4},
		files: [{source: paths.goodHook, destination: paths.hook, sha256: HOOK_SHA256, mode: '644'}],
	};
}

/** The same as a configuration file, for people and for `relight --config`. */
export function boxConfig(target: Target): Readonly<Record<string, unknown>> {
	const {server, dump, extraction, files} = target;
	const drop = (value: object): Record<string, unknown> =>
		Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null));
	return {
		hosts: {
			[target.name]: {
				routes: target.routes.map(({ssh, through, identityFile, knownHostsFile, environment}) =>
					drop({ssh, through, key: identityFile, knownHosts: knownHostsFile, environment}),
				),
				expect: {
					gpus: target.expect.gpus,
					mounts: Object.fromEntries(
						target.expect.mounts.map(({path, type, source, volume, freeBytes}) => [
							path,
							drop({type, source, volume, free: freeBytes}),
						]),
					),
				},
				unwanted: target.unwanted,
			},
		},
		server: server && configServer(server),
		dump: dump && drop({dir: dump.dir, limit: dump.limitBytes}),
		extraction: extraction && configExtraction(extraction),
		...(files.length > 0 && {files}),
	};
}

function configServer({phaseLimitMs, ...rest}: NonNullable<Target['server']>): Record<string, unknown> {
	return {...rest, phaseLimit: phaseLimitMs / 1_000};
}

function configExtraction(extraction: NonNullable<Target['extraction']>): Record<string, unknown> {
	const {records, tokens, sha256, confirmMs, ...rest} = extraction;
	return {...rest, expect: {records, tokens, sha256}, confirm: confirmMs / 1_000};
}
