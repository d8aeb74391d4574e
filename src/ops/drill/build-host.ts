import {chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {CARDS} from './gpus.ts';
import {kernelLog} from './kernel-log.ts';
import type {BoxPaths} from './paths.ts';
import type {Random} from './random.ts';
import {nvidiaSmi} from './stand-ins/nvidia-smi.ts';
import {ask, ceph, dmesg, hang, journalctl, pct, python, refused, relight, ss, systemdRun} from './stand-ins/small.ts';
import {systemctl} from './stand-ins/systemctl.ts';
import {HIDDEN_SIZE} from './states.ts';

export const BOOT_ID = '3f0c7a52-9be4-4d1e-8a63-52c1e0d7129a';
export const SHARDS = 64;
const ROW_BYTES = HIDDEN_SIZE * 2;
/** The last norm, by which a final state is told from one that was not normed. */
const NORM = 'language_model.model.norm.weight';
/** What the dump patch leaves in the source; the marker that a look for it finds. */
export const PATCH_MARKER = '_hs_dump_dir';

/** The SGLang of a box: which release, and whether the incident's patch is in its source. */
export type BoxSglang = {readonly version: string; readonly patched: boolean};

/** Everything of the box that is not data and not a process: tools, /etc, /dev, the still parts of /proc, the model. */
export function buildHost(
	paths: BoxPaths,
	program: readonly string[],
	random: Random,
	{version, patched}: BoxSglang,
): void {
	for (const directory of [
		paths.libexec,
		paths.disguises,
		paths.ports,
		`${paths.run}/gpu`,
		paths.shm,
		paths.temporary,
		paths.volume,
		paths.logs,
	]) {
		mkdirSync(directory, {recursive: true});
	}
	writeTools(paths, program);
	writeProc(paths);
	writeEtc(paths);
	writeDevices(paths);
	writeModel(paths, random);
	write(paths.patched, patched ? PATCHED_SOURCE : PLAIN_SOURCE);
	write(`${paths.tree}/python/sglang/version.py`, `__version__ = "${version}"\n`);
	write(`${paths.tree}/python/sglang/srt/model_executor/hook_manager.py`, HOOK_MANAGER_SOURCE);
	// An editable install: the tree is what is imported, its metadata lies beside it.
	const metadata = `Metadata-Version: 2.1\nName: sglang\nVersion: ${version}\n`;
	write(`${paths.tree}/python/sglang-${version}.dist-info/METADATA`, metadata);
	write(`${paths.tree}/python/sglang/__init__.py`, 'from sglang.version import __version__\n');
	write(paths.kernelLog, kernelLog());
}

export function write(path: string, text: string | Buffer, mode?: number): void {
	mkdirSync(dirname(path), {recursive: true});
	writeFileSync(path, text);
	if (mode !== undefined) chmodSync(path, mode);
}

function writeTools(paths: BoxPaths, program: readonly string[]): void {
	const tools: Record<string, string> = {
		'nvidia-smi': nvidiaSmi(paths),
		systemctl: systemctl(paths),
		'systemd-run': systemdRun(paths),
		pct: pct(paths),
		ceph: ceph(),
		dmesg: dmesg(paths),
		ss: ss(paths),
		journalctl: journalctl(),
		relight: relight(paths, program),
	};
	for (const name of ['pkill', 'killall', 'fuser', 'reboot', 'shutdown', 'poweroff']) tools[name] = refused(name);
	for (const [name, text] of Object.entries(tools)) write(`${paths.bin}/${name}`, text, 0o755);
	write(`${paths.libexec}/ask`, ask(paths), 0o755);
	write(`${paths.libexec}/hang`, hang(paths), 0o755);
	write(paths.python, python(paths, program), 0o755);
}

function writeProc(paths: BoxPaths): void {
	const {proc} = paths;
	write(`${proc}/sys/kernel/random/boot_id`, `${BOOT_ID}\n`);
	write(`${proc}/sys/kernel/hostname`, 'ct129\n');
	write(`${proc}/sys/kernel/osrelease`, '6.8.12-9-pve\n');
	write(`${proc}/version`, 'Linux version 6.8.12-9-pve (build@proxmox) #1 SMP PREEMPT_DYNAMIC PMX 6.8.12-9\n');
	write(`${proc}/loadavg`, '1.06 1.11 0.98 2/1893 4021\n');
	write(`${proc}/uptime`, readFileSync('/proc/uptime'));
	const boot = /^btime .*$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[0] ?? 'btime 0';
	write(
		`${proc}/stat`,
		`cpu  812340 1204 331022 98231840 20111 0 9921 0 0 0\nctxt 88120331\n${boot}\nprocesses 41877\nprocs_running 2\nprocs_blocked 0\n`,
	);
	write(`${proc}/meminfo`, MEMINFO);
	write(`${proc}/self/mountinfo`, mountinfo(paths));
	symlinkSync('self/mounts', `${proc}/mounts`);
	write(`${proc}/self/mounts`, '');
	write(
		`${proc}/driver/nvidia/version`,
		'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n',
	);
}

/** Blanks and such in a mount point are written as octal escapes, as the kernel does. */
const octal = (path: string): string =>
	path.replaceAll(/[ \t\n\\]/g, char => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);

function mountinfo(paths: BoxPaths): string {
	const rows: readonly (readonly [
		device: string,
		point: string,
		options: string,
		type: string,
		source: string,
		superOptions: string,
	])[] = [
		['0:61', paths.root, 'rw,relatime', 'zfs', 'local-zfs/subvol-129-disk-0', 'rw,xattr,posixacl'],
		['0:64', paths.proc, 'rw,nosuid,nodev,noexec,relatime', 'proc', 'proc', 'rw'],
		['0:65', paths.sys, 'ro,nosuid,nodev,noexec,relatime', 'sysfs', 'sysfs', 'rw'],
		['0:29', paths.cgroups, 'rw,nosuid,nodev,noexec,relatime', 'cgroup2', 'none', 'rw'],
		['0:66', paths.dev, 'rw,relatime', 'tmpfs', 'none', 'rw,size=492k,mode=755,inode64'],
		['0:67', paths.shm, 'rw,nosuid,nodev', 'tmpfs', 'tmpfs', 'rw,size=264241152k,inode64'],
		['0:68', paths.temporary, 'rw,nosuid,nodev', 'tmpfs', 'tmpfs', 'rw,size=67108864k,inode64'],
		['259:3', paths.volume, 'rw,relatime', 'ext4', '/dev/nvme1n1p1', 'rw,stripe=32'],
		[
			'0:71',
			paths.share,
			'ro,relatime',
			'nfs4',
			'10.1.2.9:/srv/models',
			'ro,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,timeo=600,retrans=2',
		],
	];
	return rows
		.map(([device, point, options, type, source, superOptions], at) => {
			const parent = at === 0 ? 430 : 512;
			return `${512 + at} ${parent} ${device} / ${octal(point)} ${options} shared:${at + 210} - ${type} ${source} ${superOptions}\n`;
		})
		.join('');
}

function writeEtc(paths: BoxPaths): void {
	write(`${paths.etc}/hostname`, 'ct129\n');
	write(`${paths.etc}/machine-id`, '8f3a5d0c2be94a7f9d6c1e7b0a4f1290\n');
	write(`${paths.etc}/os-release`, 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n');
	write(`${paths.etc}/fstab`, '# mounts of this container are set by the hypervisor\n');
	write(`${paths.etc}/crontab`, 'SHELL=/bin/sh\n17 * * * * root cd / && run-parts --report /etc/cron.hourly\n');
}

function writeDevices(paths: BoxPaths): void {
	const names = [
		...Array.from({length: CARDS}, (_, index) => `nvidia${index}`),
		'nvidiactl',
		'nvidia-uvm',
		'nvidia-uvm-tools',
		'nvidia-modeset',
	];
	for (const name of names) write(`${paths.dev}/${name}`, '');
	write(`${paths.dev}/nvme1n1p1`, '');
	mkdirSync(`${paths.dev}/disk/by-uuid`, {recursive: true});
	symlinkSync('../../nvme1n1p1', `${paths.dev}/disk/by-uuid/6f1c2a94-7d3e-4b18-9c05-e1a8f07b2d63`);
}

function writeModel(paths: BoxPaths, random: Random): void {
	const map: Record<string, string> = {};
	let total = 0;
	for (let shard = 1; shard <= SHARDS; shard++) {
		const name = `model-${String(shard).padStart(5, '0')}-of-${String(SHARDS).padStart(6, '0')}.safetensors`;
		const keys = [`language_model.model.layers.${shard - 1}.input_layernorm.weight`];
		if (shard === SHARDS) keys.push(NORM);
		const places = keys.map((key, at) => [
			key,
			{dtype: 'BF16', shape: [HIDDEN_SIZE], data_offsets: [at * ROW_BYTES, (at + 1) * ROW_BYTES]},
		]);
		const header = Buffer.from(JSON.stringify(Object.fromEntries(places)));
		const file = Buffer.alloc(8 + header.length + keys.length * ROW_BYTES);
		file.writeBigUInt64LE(BigInt(header.length), 0);
		header.copy(file, 8);
		for (let at = 8 + header.length; at < file.length; at += 2) file.writeUInt16LE(0x3f00 + random.whole(0, 128), at);
		write(`${paths.model}/${name}`, file);
		for (const key of keys) map[key] = name;
		total += keys.length * ROW_BYTES;
	}
	write(
		`${paths.model}/model.safetensors.index.json`,
		JSON.stringify({metadata: {total_size: total}, weight_map: map}),
	);
	write(
		`${paths.model}/config.json`,
		JSON.stringify({
			architectures: ['KimiK25ForConditionalGeneration'],
			model_type: 'kimi_k25',
			text_config: {model_type: 'deepseek_v3', hidden_size: HIDDEN_SIZE, num_hidden_layers: 61, vocab_size: 163_840},
		}),
	);
}

const PLAIN_SOURCE = `# Adapted from DeepSeek and vLLM
from torch import nn


class DeepseekV2Model(nn.Module):
    def __init__(self, config, quant_config=None, prefix: str = ""):
        super().__init__()
`;

const PATCHED_SOURCE = `# Adapted from DeepSeek and vLLM
import os
from typing import Optional

import torch
from torch import nn


class DeepseekV2Model(nn.Module):
    def __init__(self, config, quant_config=None, prefix: str = ""):
        super().__init__()
        # hidden state dump (local patch)
        self.${PATCH_MARKER} = os.environ.get("SGLANG_HS_DUMP_DIR")
        self._hs_counter = 0

    def _hs_dump(self, aux, final):
        self._hs_counter += 1
        target = os.path.join(self.${PATCH_MARKER}, f"req_{self._hs_counter}")
        os.makedirs(target, exist_ok=True)
        for i, hidden in enumerate(aux):
            torch.save(hidden.cpu(), os.path.join(target, f"aux_{i}.pt"))
        torch.save(final.cpu(), os.path.join(target, "final.pt"))
        open(os.path.join(target, "done"), "w").close()
`;

const HOOK_MANAGER_SOURCE = `import importlib
import json


def register_forward_hooks(model, hook_specs):
    raise RuntimeError("a drill box runs its own stand-in")
`;

const MEMINFO = `MemTotal:       1073741824 kB
MemFree:         901223312 kB
MemAvailable:   1011340120 kB
Buffers:           1204416 kB
Cached:          121900552 kB
SwapCached:              0 kB
Dirty:                9120 kB
Writeback:               0 kB
Shmem:                  36 kB
SwapTotal:               0 kB
SwapFree:                0 kB
`;
