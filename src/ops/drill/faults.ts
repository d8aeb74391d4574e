import {existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import type {Target} from '../target.ts';
import {type BoxSglang, write} from './build-host.ts';
import type {BoxPaths} from './paths.ts';
import type {Population} from './population.ts';
import type {Random} from './random.ts';
import type {DatasetRecord, Dimensions} from './records.ts';
import {VLLM_UNIT} from './residents.ts';
import {spoilSamples} from './spoil-samples.ts';
import type {MountTrouble} from './stand-ins/file-tools.ts';
import {HIDDEN_SIZE, LAYERS} from './states.ts';
import type {Units} from './units.ts';

export type FaultId =
	| 'frozen-ssh'
	| 'frozen-launch'
	| 'hook'
	| 'hung-mount'
	| 'wedged-driver'
	| 'vendor-link'
	| 'timer'
	| 'patch-lost'
	| 'wrong-disk'
	| 'disk-full'
	| 'port-taken'
	| 'server-dies'
	| 'server-hangs'
	| 'corrupt-samples'
	| 'nearly-done'
	| 'shard-cut'
	| 'other-dataset';

/** What goes wrong in the model server while it starts; shards count from 1. */
export type ServerTrouble = {
	readonly dies: {readonly shard: number; readonly says: string} | null;
	readonly hangs: {readonly shard: number} | null;
};

/** The box that is to be ruined further: built and inhabited, nobody connected yet. */
export type Ground = {
	readonly paths: BoxPaths;
	readonly target: Target;
	readonly records: readonly DatasetRecord[];
	readonly size: Dimensions;
	readonly random: Random;
	readonly program: readonly string[];
	readonly population: Population;
	readonly units: Units;
	/** Samples that count as done by their structure and are not. */
	readonly spoilt: Set<number>;
};

/** One thing more that is wrong with the incident's box. It lies in the box, and in what the operator expects of it. */
export type Fault = {
	readonly id: FaultId;
	readonly says: string;
	/** What the words of the refusal must hold; null: the recovery gets past it. */
	readonly refused: RegExp | null;
	/** It can be seen before the first act, so that nothing is stopped or ended for a recovery that cannot succeed. */
	readonly atOnce?: boolean;
	readonly sglang?: BoxSglang;
	/** Never one of several chosen by a seed: boxes of earlier seeds stay what they were. */
	readonly alone?: boolean;
	size?(size: Dimensions): Dimensions;
	/** What the operator's configuration says because of it. */
	configures?(target: Target): Target;
	mount?(ground: Pick<Ground, 'paths' | 'records' | 'size'>): Partial<MountTrouble>;
	server?(random: Random): Partial<ServerTrouble>;
	ruins?(ground: Ground): Promise<void> | void;
};

const TRUE_VOLUME = '6f1c2a94-7d3e-4b18-9c05-e1a8f07b2d63';
const OTHER_VOLUME = '0b7e5d10-2f4c-4c9a-8d55-3a90c1f6e7b2';
/** Long enough for a start that goes well, short enough to wait for. */
const PHASE_LIMIT_MS = 10_000;

export const FAULTS: readonly Fault[] = [
	{
		id: 'frozen-ssh',
		says: 'the direct route works at first and then opens no more sessions',
		refused: null,
	},
	{
		id: 'frozen-launch',
		says: 'the direct route works until the launch is sent, which never arrives',
		refused: null,
		alone: true,
	},
	{
		id: 'hook',
		says: 'SGLang was updated, the patch is gone: states come through relight_hs, which has to be put in place first',
		refused: null,
		sglang: {version: '0.5.12', patched: false},
	},
	{
		id: 'hung-mount',
		says: 'no call to the data disk ever returns',
		refused: /\/data does not answer/,
		atOnce: true,
		mount: ({paths}) => ({hung: paths.volume}),
	},
	{
		id: 'wedged-driver',
		says: 'nvidia-smi gives no answer and cannot be ended',
		refused: /cards not known: nvidia-smi: .*(no answer|stuck in the driver)/,
		atOnce: true,
		ruins: ({paths}) => write(paths.wedged, ''),
	},
	{
		id: 'vendor-link',
		says: 'beside the link below /etc one outside wants the service at boot, where `disable` does not reach',
		refused: null,
		ruins({paths, units}) {
			const wants = `${paths.vendorUnits}/multi-user.target.wants`;
			mkdirSync(wants, {recursive: true});
			symlinkSync(`${paths.unitFiles}/${VLLM_UNIT}`, `${wants}/${VLLM_UNIT}`);
			units.reload();
		},
	},
	{
		id: 'timer',
		says: 'a timer starts the service again within seconds of its end',
		refused: null,
		ruins({units}) {
			const unit = units.all.get(VLLM_UNIT);
			const name = VLLM_UNIT.replace(/\.service$/, '.timer');
			if (unit) unit.timer = {name, everyMs: 1_500, dueAt: 0};
			units.reload();
		},
	},
	{
		id: 'patch-lost',
		says: 'the package that would be imported has no patch any more, and no hook is configured',
		refused: /neither patch nor hook is active/,
		atOnce: true,
		sglang: {version: '0.5.9', patched: false},
	},
	{
		id: 'wrong-disk',
		says: 'another volume is mounted where the data should be',
		refused: new RegExp(`volume ${OTHER_VOLUME}, expected ${TRUE_VOLUME}`),
		atOnce: true,
		configures: target => expecting(target, {volume: TRUE_VOLUME}),
		ruins({paths}) {
			write(`${paths.volume}/.volume-id`, `${OTHER_VOLUME}\n`);
			rmSync(`${paths.dev}/disk/by-uuid/${TRUE_VOLUME}`, {force: true});
			symlinkSync('../../nvme1n1p1', `${paths.dev}/disk/by-uuid/${OTHER_VOLUME}`);
		},
	},
	{
		id: 'disk-full',
		says: 'the data disk has less free than the remaining samples need',
		refused: /are free on \S*\/data, .* are needed for the remaining samples/,
		atOnce: true,
		// What is left is to be compared with what is needed, not with a figure that somebody once wrote down.
		configures: target => expecting(target, {freeBytes: null}),
		mount: ({paths, records, size}) => ({
			full: {path: paths.volume, availableBytes: remainingBytes(records, size) / 2},
		}),
	},
	{
		id: 'port-taken',
		says: 'another program listens on the port of the model server',
		refused: /port \d+ is taken by python3 \(pid \d+\)/,
		atOnce: true,
		ruins: ({paths, target, population, program}) => takePort(paths, target, population, program),
	},
	{
		id: 'server-dies',
		says: 'the model server dies while it loads the shards',
		refused: /(weights damaged|CUDA out of memory|NCCL): .*(fetch what is missing|mem-fraction-static|fell off)/,
		server: random => ({dies: {shard: random.whole(4, 60), says: DEATHS[random.whole(0, DEATHS.length)] ?? ''}}),
	},
	{
		id: 'server-hangs',
		says: 'the model server stands still at a shard for ever',
		refused: /no progress in phase loading \d+\/64 shards for \d+ s/,
		configures: target =>
			target.server ? {...target, server: {...target.server, phaseLimitMs: PHASE_LIMIT_MS}} : target,
		server: random => ({hangs: {shard: random.whole(4, 60)}}),
	},
	{
		id: 'corrupt-samples',
		says: 'stored samples of the last group have flipped bits and pages of zeros, and the right size',
		refused: null,
		ruins: ({paths, size, random, spoilt}) => spoilSamples(paths, size, random, spoilt),
	},
	{
		id: 'nearly-done',
		says: 'a handful of samples is missing: the extraction has ended before anybody can look at its process',
		refused: null,
		alone: true,
		size: size => ({...size, records: 9 * size.groupSize + size.lastGroup}),
	},
	{
		id: 'shard-cut',
		says: 'the disk ran full while the model was copied: a shard is there and ends too early',
		refused:
			/1 of 64 shards are not whole: model-00017-of-000064\.safetensors: it is \d+ bytes long, by its header \d+/,
		atOnce: true,
		alone: true,
		ruins({paths}) {
			const shard = `${paths.model}/model-00017-of-000064.safetensors`;
			truncateSync(shard, statSync(shard).size - 2);
		},
	},
	{
		id: 'other-dataset',
		says: 'the dataset was made anew: as many samples, and one of them another',
		refused: /merged.json has sha256 [0-9a-f]{12}…, expected [0-9a-f]{12}…/,
		atOnce: true,
		alone: true,
		ruins({paths}) {
			const records: DatasetRecord[] = JSON.parse(readFileSync(paths.dataset, 'utf8'));
			writeFileSync(paths.dataset, JSON.stringify(records.map((record, at) => (at === 0 ? records[1] : record))));
		},
	},
];

export const faultOf = (id: FaultId): Fault => FAULTS.find(fault => fault.id === id) ?? fail(id);

function fail(id: string): never {
	throw new Error(`no fault ${id}`);
}

/** The other expectations of the data disk stay as they are. */
function expecting(target: Target, change: Partial<Target['expect']['mounts'][number]>): Target {
	const [data, ...others] = target.expect.mounts;
	return data ? {...target, expect: {...target.expect, mounts: [{...data, ...change}, ...others]}} : target;
}

/** Of everything that is not stored yet, without the few bytes of each file's frame. */
function remainingBytes(records: readonly DatasetRecord[], {groupSize, lastGroup}: Dimensions): number {
	const tokens = records.slice(9 * groupSize + lastGroup).reduce((sum, record) => sum + record.input_ids.length, 0);
	return tokens * HIDDEN_SIZE * LAYERS * 2;
}

async function takePort(
	paths: BoxPaths,
	{server}: Target,
	population: Population,
	program: readonly string[],
): Promise<void> {
	const port = String(server?.port ?? 0);
	const [file = '', ...args] = program;
	const commandLine = ['python3', '-m', 'http.server', port];
	population.spawn({
		file,
		args: [...args, 'drill-part', 'listener', port],
		env: {RELIGHT_DRILL_BOX: paths.root},
		disguise: {name: 'python3', commandLine, cgroup: '/user.slice/user-0.slice/session-9.scope'},
	});
	for (let turn = 0; !existsSync(`${paths.ports}/${port}`); turn++) {
		if (turn > 200) throw new Error(`nothing listens on port ${port}`);
		await sleep(50);
	}
}

/** How a server says that it cannot go on, as SGLang and what it stands on print it. */
const DEATHS: readonly string[] = [
	`safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer`,
	`torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.98 GiB of which 1.02 GiB is free.`,
	`torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:328, unhandled cuda error (run with NCCL_DEBUG=INFO for details)`,
];
