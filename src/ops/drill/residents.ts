import {existsSync, realpathSync, symlinkSync} from 'node:fs';
import {write} from './build-host.ts';
import {CARDS} from './gpus.ts';
import type {BoxPaths} from './paths.ts';
import type {Disguise, Population, Resident} from './population.ts';
import type {UnitDefinition} from './unit.ts';
import type {Units} from './units.ts';

export const VLLM_UNIT = 'vllm-kimi-k25-int4.service';
/** 75.8 GiB a card, as the incident found it. */
const HELD_MIB = 77_617;
const GIB = 2 ** 30;

/**
 * A name for the system's `cat`: reading the leash, it costs a megabyte, does nothing, and ends with the drill. The kernel
 * takes a process's name from the link, so even the true name is right.
 */
export function idler(paths: BoxPaths, name: string): string {
	const link = `${paths.libexec}/${name}`;
	if (!existsSync(link)) symlinkSync(realpathSync(['/usr/bin/cat', '/bin/cat'].find(existsSync) ?? '/bin/cat'), link);
	return link;
}

/** What runs when the box comes up: the service nobody wanted, the driver's own daemon, a leftover of the old run. */
export function settle(paths: BoxPaths, units: Units, population: Population): void {
	write(`${paths.unitFiles}/${VLLM_UNIT}`, vllmUnitFile(paths));
	write(`${paths.etc}/systemd/nvidia-persistenced.service`, PERSISTENCED_UNIT);
	write(`${paths.unitFiles}/multi-user.target.wants/.keep`, '');
	for (const [unit, file] of [
		[VLLM_UNIT, `${paths.unitFiles}/${VLLM_UNIT}`],
		['nvidia-persistenced.service', `${paths.etc}/systemd/nvidia-persistenced.service`],
	] as const) {
		symlinkSync(file, `${paths.unitFiles}/multi-user.target.wants/${unit}`);
	}
	units.start(units.load(persistenced(paths, population)));
	units.start(units.load(vllm(paths, population)));
	idle(paths, population, 'python3', {
		name: 'python3',
		commandLine: ['python3', '-u', '/tmp/02b_extract_hidden_states_sglang.py', '--max-seq-len', '8192'],
		cgroup: '/user.slice/user-0.slice/session-7.scope',
		residentBytes: 1.9 * GIB,
	});
}

function idle(
	paths: BoxPaths,
	population: Population,
	name: string,
	disguise: Disguise,
	extra: {unit?: string; protected?: boolean} = {},
): Resident {
	return population.spawn({file: idler(paths, name), argv0: 'cat', args: [], disguise, ...extra});
}

const vllmArguments = (paths: BoxPaths): string[] => [
	paths.python,
	'-m',
	'vllm.entrypoints.openai.api_server',
	'--model',
	paths.model,
	'--tensor-parallel-size',
	String(CARDS),
	'--gpu-memory-utilization',
	'0.95',
	'--trust-remote-code',
	'--served-model-name',
	'kimi-k2.5',
];

function vllm(paths: BoxPaths, population: Population): UnitDefinition {
	const commandLine = vllmArguments(paths);
	return {
		name: VLLM_UNIT,
		description: 'vLLM server for Kimi-K2.5 INT4',
		fragment: `${paths.unitFiles}/${VLLM_UNIT}`,
		wantedBy: 'multi-user.target',
		restart: 'on-failure',
		restartMs: 2_000,
		stopLimitMs: 30_000,
		execStart: commandLine,
		collect: false,
		fatalChildren: true,
		launch({cgroup, name: unit}) {
			const main = idle(
				paths,
				population,
				'python3',
				{name: 'python3', commandLine, cgroup, residentBytes: 2.4 * GIB},
				{unit},
			);
			const workers = Array.from({length: CARDS}, (_, index) =>
				idle(
					paths,
					population,
					`VLLM::Worker_TP${index}`,
					{
						name: `VLLM::Worker_TP${index}`,
						commandLine: [`VLLM::Worker_TP${index}`],
						cgroup,
						parentPid: main.pid,
						residentBytes: 6.1 * GIB,
						devices: ['nvidiactl', 'nvidia-uvm', `nvidia${index}`],
						gpu: {index, memoryMib: HELD_MIB},
					},
					{unit},
				),
			);
			return [main, ...workers];
		},
	};
}

function persistenced(paths: BoxPaths, population: Population): UnitDefinition {
	const commandLine = ['/usr/bin/nvidia-persistenced', '--user', 'nvpd', '--no-persistence-mode', '--verbose'];
	return {
		name: 'nvidia-persistenced.service',
		description: 'NVIDIA Persistence Daemon',
		fragment: `${paths.etc}/systemd/nvidia-persistenced.service`,
		wantedBy: 'multi-user.target',
		restart: 'always',
		restartMs: 100,
		stopLimitMs: 90_000,
		execStart: commandLine,
		collect: false,
		fatalChildren: false,
		launch: ({cgroup, name: unit}) => [
			idle(
				paths,
				population,
				'nvidia-persistenced',
				{name: 'nvidia-persistenced', commandLine, cgroup, devices: ['nvidiactl', 'nvidia0']},
				{unit, protected: true},
			),
		],
	};
}

const vllmUnitFile = (paths: BoxPaths): string => `[Unit]
Description=vLLM server for Kimi-K2.5 INT4
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
User=root
Environment=VLLM_WORKER_MULTIPROC_METHOD=spawn
ExecStart=${vllmArguments(paths).join(' ')}
Restart=on-failure
RestartSec=2
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
`;

const PERSISTENCED_UNIT = `[Unit]
Description=NVIDIA Persistence Daemon

[Service]
Type=simple
Restart=always
ExecStart=/usr/bin/nvidia-persistenced --user nvpd --no-persistence-mode --verbose

[Install]
WantedBy=multi-user.target
`;
