import {execFileSync, spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {Target} from '../../src/ops/target.ts';
import {until} from '../support/until.ts';
import {all, program, root} from './needs.ts';
import {hostBehind} from './operator.ts';
import {childrenOf, send} from './sshd.ts';

/** A real systemd as pid 1 of its own namespaces, reached as a container is: through `nsenter`. */
export type SystemdBox = {
	readonly target: Target;
	/** Seen from here. */
	readonly pid: number;
	/** Runs a script inside and gives what it says; throws when it fails. */
	inside(script: string): string;
	/** A program that goes on beside the test. Gives what ends it. */
	beside(argv: readonly string[]): () => void;
	close(): Promise<void>;
};

const started = (): string | null => {
	if (!existsSync('/lib/systemd/systemd')) return 'there is no /lib/systemd/systemd here (package systemd)';
	const tried = spawnSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs lab /mnt && mount -t cgroup2 lab /mnt']);
	return tried.status === 0 ? null : `no cgroup2 can be mounted here (${tried.stderr?.toString().trim()})`;
};
export const canRunSystemd = all(root, program('unshare', 'util-linux'), program('nsenter', 'util-linux'), started);

/** `unwanted`: patterns of the units that must not run there. */
export async function startSystemd(unwanted: readonly string[]): Promise<SystemdBox> {
	const folder = mkdtempSync(join(tmpdir(), 'relight-systemd-'));
	mkdirSync(join(folder, 'box'));
	const script = join(import.meta.dirname, 'systemd-box.sh');
	const outer = spawn('unshare', ['-m', 'sh', script, join(folder, 'box')], {stdio: ['ignore', 'ignore', 'pipe']});
	let said = '';
	outer.stderr.on('data', chunk => {
		said += chunk;
	});
	const first = () => childrenOf(outer.pid as number)[0];
	const enter = (...argv: readonly string[]): readonly string[] => ['-t', String(first()), '-a', ...argv];
	await until(
		() => spawnSync('nsenter', enter('systemctl', 'is-system-running')).stdout?.toString() === 'running\n',
		20_000,
		() => `systemd as pid 1 (${said.trim() || 'it says nothing'})`,
	);
	return {
		target: hostBehind(['nsenter', ...enter()], `, unwanted: ${JSON.stringify(unwanted)}`),
		pid: first() as number,
		inside: text => execFileSync('nsenter', enter('sh', '-ec', text), {encoding: 'utf8', stdio: 'pipe'}),
		beside(argv) {
			const {pid} = spawn('nsenter', enter(...argv), {stdio: 'ignore'});
			return () => {
				for (const each of childrenOf(pid as number)) send(each, 'SIGKILL');
			};
		},
		async close() {
			outer.kill('SIGKILL');
			await until(() => outer.exitCode !== null || outer.signalCode !== null);
			await until(() => groupsAreGone(folder, `relight-lab-${outer.pid}`), 15_000, 'the end of its control groups');
			rmSync(folder, {recursive: true, force: true});
		},
	};
}

/** Groups cannot go before their last process has. */
function groupsAreGone(folder: string, group: string): boolean {
	const script =
		'mount -t cgroup2 lab "$0" && cd "$0" && find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -e "$0/$1" ]';
	return spawnSync('unshare', ['-m', 'sh', '-c', script, join(folder, 'box'), group]).status === 0;
}
