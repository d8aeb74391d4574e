import type {FactValues} from '../../../src/ops/facts.ts';
import type {InventoryGroup} from '../../../src/ops/probes/extraction.ts';
import type {Gpu} from '../../../src/ops/probes/gpus.ts';
import type {Mount, MountSize} from '../../../src/ops/probes/mounts.ts';
import {known} from '../../../src/ops/probes/probe.ts';
import type {Process} from '../../../src/ops/probes/processes.ts';
import type {Service} from '../../../src/ops/probes/services.ts';

/** The incident's box a quarter of an hour after it came back: every card held idle, one mount dead, nothing extracted. */
export const NOW = Date.UTC(2026, 2, 2, 17, 21, 4);
export const UNIT = 'vllm-kimi-k25-int4.service';
const GIB = 2 ** 30;
const MINUTE = 60_000;

export const gpu = (index: number, change: Partial<Gpu> = {}): Gpu => ({
	index,
	uuid: `GPU-${index}`,
	busId: `${index}1:00`,
	name: 'NVIDIA RTX PRO 6000 Blackwell',
	memoryTotalBytes: known(96 * GIB),
	memoryUsedBytes: known(75.8 * GIB),
	sharedMemory: false,
	busyPercent: known(0),
	temperatureCelsius: known(40 + (index % 4)),
	slowdownCelsius: known(92),
	powerWatts: known(80 + index),
	powerCapWatts: known(600),
	smClockMhz: known(210),
	pcieGeneration: known(5),
	pcieGenerationMax: known(5),
	pcieWidth: known(16),
	pcieWidthMax: known(16),
	eccUncorrected: known(0),
	mig: known(false),
	persistence: known(true),
	throttle: known([]),
	needsReset: false,
	...change,
});

export const process = (pid: number, change: Partial<Process> = {}): Process => ({
	pid,
	startTicks: pid * 10,
	parentPid: 1,
	name: 'python3',
	state: 'S',
	sessionId: pid,
	groupId: pid,
	cpuTicks: 100,
	threads: 24,
	residentBytes: 1.2 * GIB,
	owner: {kind: 'none'},
	waitChannel: null,
	killPending: false,
	stuckSince: null,
	...change,
});

export const mount = (path: string, change: Partial<Mount> = {}): Mount => ({
	id: path.length,
	device: `8:${path.length}`,
	path,
	root: '/',
	type: 'ext4',
	source: '/dev/sda1',
	volatile: false,
	covered: false,
	writable: 'yes',
	size: {kind: 'answered', totalBytes: 252 * GIB, availableBytes: 134 * GIB, inodes: 100, inodesFree: 80},
	unexpected: null,
	expected: false,
	...change,
});

const answered = (totalBytes: number, availableBytes: number): MountSize => ({
	kind: 'answered',
	totalBytes,
	availableBytes,
	inodes: 1_000_000,
	inodesFree: 990_000,
});

const unit = (owner: string): Process['owner'] => ({kind: 'unit', unit: owner});

const workers = Array.from({length: 8}, (_, index) =>
	process(843 + index, {parentPid: 812, name: 'VLLM::Worker_TP', owner: unit(UNIT), waitChannel: 'futex_wait'}),
);

export const service = (change: Partial<Service> = {}): Service => ({
	unit: UNIT,
	loadState: 'loaded',
	activeState: 'active',
	subState: 'running',
	result: 'success',
	mainPid: 812,
	controlGroup: `/system.slice/${UNIT}`,
	unitFileState: 'enabled',
	preset: 'enabled',
	fragmentPath: `/etc/systemd/system/${UNIT}`,
	dropInPaths: [],
	wantedBy: ['multi-user.target'],
	wantedOutside: [],
	requiredBy: [],
	triggeredBy: [],
	restart: 'on-failure',
	restarts: 0,
	stopLimitMs: 90_000,
	job: '',
	needsReload: false,
	execStart: '/root/ml-env/bin/vllm serve /shared/kimi-k2.5-int4',
	description: 'vLLM Kimi K2.5 INT4',
	pids: [812, ...workers.map(({pid}) => pid)],
	unwanted: true,
	...change,
});

const groups = Array.from({length: 10}, (_, index): InventoryGroup => {
	const present = index < 8 ? 2000 : index === 8 ? 1997 : 424;
	return {
		name: `rows_${index * 2000}-${index * 2000 + 2000}`,
		from: index * 2000,
		to: index * 2000 + 2000,
		modifiedAt: NOW - 161 * MINUTE,
		present,
		bytes: present * 136_314_880,
		newestAt: NOW - (170 - index) * MINUTE,
		temporaries: 0,
		unchecked: 0,
		files: new Map(),
	};
});

/** Of the launch lines in these tests, and of what protects whole states. */
const SGLANG_FLAGS = [
	...['--model-path', '--tp-size', '--port', '--host', '--name', '--forward-hooks', '--trust-remote-code'],
	...['--chunked-prefill-size', '--max-prefill-tokens', '--disable-radix-cache', '--disable-overlap-schedule'],
	...['--disable-cuda-graph', '--disable-piecewise-cuda-graph', '--enforce-disable-flashinfer-allreduce-fusion'],
];

export const WEIGHTS = {seal: '1', shards: 64, shardsExpected: 64, missing: [], damaged: [], unread: []};
export const DATASET = {seal: '1', begunWith: null, sha256: null, records: 37_312};

export const sampleFacts: FactValues = {
	gpus: {
		cards: [0, 1, 2, 3, 4, 5, 6, 7].map(index => gpu(index, index === 3 ? {pcieWidth: known(8)} : {})),
		lost: [],
		moreAt: 0,
	},
	holders: {
		bootId: 'boot',
		driverList: 'listed',
		sweptAt: NOW - 4_000,
		sweepMs: 2,
		searched: [],
		holders: workers.map(({pid, startTicks}, index) => ({
			pid,
			startTicks,
			memory: [{gpuUuid: `GPU-${index}`, usedBytes: known(75.8 * GIB)}],
			devices: [`nvidia${index}`, 'nvidiactl'],
			driverName: 'VLLM::Worker_TP',
		})),
	},
	processes: {
		bootId: 'boot',
		complete: true,
		ticksPerSecond: 100,
		uptimeTicks: 200_000,
		processes: [
			process(1, {parentPid: 0, name: 'systemd', residentBytes: 12_000_000}),
			process(501, {name: 'sshd', owner: unit('ssh.service'), residentBytes: 9_000_000}),
			process(812, {name: 'vllm', owner: unit(UNIT), residentBytes: 4.1 * GIB, waitChannel: 'ep_poll'}),
			...workers,
			process(9120, {
				state: 'D',
				owner: {kind: 'session', session: 'c3'},
				waitChannel: 'rpc_wait_bit_killable',
				stuckSince: NOW - 252_000,
				residentBytes: 2.2 * GIB,
			}),
			process(9300, {name: 'bash', owner: {kind: 'session', session: 'c3'}, residentBytes: 5_000_000}),
		],
		cpuFraction: new Map([
			['812@8120', 0.003],
			...workers.map(({pid, startTicks}) => [`${pid}@${startTicks}`, 0] as const),
		]),
		scanMs: 3,
		scannedAt: NOW - 600,
		readAtTicks: new Map(),
	},
	'command-lines': {
		lines: new Map([
			[
				'812@8120',
				'/root/ml-env/bin/vllm serve /shared/kimi-k2.5-int4 --tensor-parallel-size 8 --gpu-memory-utilization 0.95',
			],
			...workers.map(({pid, startTicks}, index) => [`${pid}@${startTicks}`, `VLLM::Worker_TP${index}`] as const),
			['9120@91200', 'python /tmp/02b_extract_hidden_states_sglang.py --max-seq-len 8192'],
			['9300@93000', '-bash'],
		]),
	},
	mounts: {
		missing: [],
		mounts: [
			mount('/', {size: answered(252 * GIB, 134 * GIB)}),
			mount('/data', {
				type: 'ceph',
				source: 'ceph-pool/data',
				expected: true,
				size: {kind: 'hung', since: NOW - 252_000, childPid: 9433, childStartTicks: 1},
			}),
			mount('/shared', {type: 'nfs4', source: 'nas:/models', expected: true, size: answered(8192 * GIB, 6963 * GIB)}),
			mount('/dev/shm', {type: 'tmpfs', source: 'tmpfs', volatile: true, size: answered(252 * GIB, 251.9 * GIB)}),
			mount('/tmp', {type: 'tmpfs', source: 'tmpfs', volatile: true, size: answered(64 * GIB, 63 * GIB)}),
		],
	},
	services: {manager: 'systemd', units: [service()]},
	topology: {cards: 2, links: [{one: 0, other: 1, word: 'NODE'}]},
	autostart: {lines: [], containers: null},
	acting: {held: null},
	'kernel-log': {
		source: 'dmesg',
		cursor: null,
		findings: [
			{
				kind: 'xid',
				at: NOW - 3_600_000,
				sinceBootSeconds: null,
				count: 1,
				text: 'NVRM: Xid (PCI:0000:51:00): 79, GPU has fallen off the bus',
				busId: '51:00',
				xid: 79,
				pid: null,
				advice: 'reset or power cycle the card',
			},
		],
	},
	server: {
		record: null,
		proved: false,
		lastStart: null,
		process: 'none',
		phase: 'none',
		shards: null,
		phaseSince: null,
		failure: null,
		logSizeBytes: null,
		logModifiedAt: null,
		tail: [],
		portOwner: known(null),
		tokensPerSecond: null,
		cachedTokens: null,
		health: {known: false, why: 'not asked'},
	},
	extraction: {
		inventory: {
			expected: 37_312,
			present: 18_421,
			complete: 18_417,
			holes: [
				[17_003, 17_003],
				[17_220, 17_221],
			],
			suspects: [{index: 18_412, path: '/data/out/rows_18000-20000/data_18412.pt', reason: 'no end record'}],
			groups,
			bytes: 18_421 * 136_314_880,
			newestAt: NOW - 161 * MINUTE,
			newestPath: '/data/out/rows_18000-20000/data_18423.pt',
			temporaries: 1,
			quarantined: 0,
		},
		run: null,
		dumps: [{name: 'req_17', modifiedAt: NOW - 170 * MINUTE, bytes: 120_000_000}],
		script: 'gone',
		listedAt: '0',
	},
	log: {
		path: '/data/eagle3/synth_100k/logs/sglang_extraction2.log',
		state: 'ok',
		inode: '7',
		offsetBytes: 4096,
		lines: [
			'Loading safetensors checkpoint shards:  98% Completed | 63/64 [00:29<00:00,  2.10it/s]',
			'Loading safetensors checkpoint shards: 100% Completed | 64/64 [00:29<00:00,  2.20it/s]',
			'[2026-03-02 17:10:05 TP0] Load weight end. type=KimiK25ForCausalLM, dtype=torch.bfloat16, avail mem=11.02 GB, mem usage=83.10 GB.',
			'WARNING: attention backend falls back to triton',
			'INFO:     Started server process [1684]',
			'INFO:     Waiting for application startup.',
			'RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB',
		],
		modifiedAt: NOW - 650_000,
		unfinished: false,
	},
	files: {
		files: [
			{
				path: '/tmp/02b_extract_hidden_states_sglang.py',
				role: 'script',
				state: 'gone',
				bytes: null,
				sha256: null,
				volatile: true,
			},
		],
		node: '20.19.2',
		machine: 'x86_64',
		patch: {path: '/root/sglang/deepseek_v2.py', state: 'present'},
		hook: {
			state: 'seen',
			facts: {
				python: '3.12.3',
				sglang: {
					directory: '/root/sglang/python/sglang',
					version: '0.5.9',
					source: {path: '/root/sglang/python/sglang/srt/models/deepseek_v2.py', sha256: 'e3', marked: true},
					bytecode: null,
					flags: null,
					hooks: true,
				},
				tree: null,
				hook: {importable: null, placed: null},
				model: null,
				status: null,
			},
		},
	},
	contents: {
		weights: WEIGHTS,
		dataset: DATASET,
	},
	flags: {key: '/root/sglang/python/sglang 0.5.9', flags: SGLANG_FLAGS, why: '', askedAt: NOW},
	guest: {status: 'running', lock: null, frozen: false, storage: null, verdict: 'running'},
};
