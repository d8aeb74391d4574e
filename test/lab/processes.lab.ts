import {type ChildProcess, spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {open as openFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect} from 'vitest';
import type {Composition} from '../../bin/compose.ts';
import {fresh} from '../../src/ops/facts.ts';
import {operationEntry} from '../../src/ops/operations/catalogue.ts';
import {isRefusal} from '../../src/ops/operations/operation.ts';
import pidfd from '../../src/ops/operations/pidfd.py';
import {identityKey} from '../../src/ops/probes/probe.ts';
import type {Process} from '../../src/ops/probes/processes.ts';
import {until} from '../support/until.ts';
import {all, lab, program, root} from './needs.ts';
import {act, type Contained, contained, hostBehind, openOn} from './operator.ts';
import {childrenOf, send} from './sshd.ts';

let folder = '';
let place: Contained;
let open: Composition;
const started: ChildProcess[] = [];

const canContain = all(root, program('unshare', 'util-linux'), program('nsenter', 'util-linux'));

beforeEach(async () => {
	if (canContain() !== null) return;
	folder = mkdtempSync(join(tmpdir(), 'relight-processes-'));
	place = await contained(['-m', '-p', '-f', '--mount-proc'], '');
	open = await openOn(hostBehind(['nsenter', '-t', String(place.pid), '-m', '-p']), folder);
});
afterEach(async () => {
	await open?.engine.stop();
	for (const child of started.splice(0)) for (const pid of childrenOf(child.pid as number)) send(pid, 'SIGKILL');
	await place?.close();
	rmSync(folder, {recursive: true, force: true});
});

/** Starts a program in the pid namespace, with its parent outside, which takes note of its end. */
async function start(...argv: readonly string[]): Promise<{outer: number; pid: number; child: ChildProcess}> {
	const child = spawn('nsenter', ['-t', String(place.pid), '-m', '-p', ...argv], {stdio: 'ignore'});
	started.push(child);
	await until(() => childrenOf(child.pid as number).length > 0);
	const outer = childrenOf(child.pid as number)[0] as number;
	return {outer, pid: pidInside(outer), child};
}

const pidInside = (outer: number): number =>
	Number(/^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${outer}/status`, 'utf8'))?.[1]);

async function seen(pid: number): Promise<Process | undefined> {
	await open.engine.look(['processes']);
	return fresh(open.engine.situation().facts.processes)?.processes.find(each => each.pid === pid);
}

/** Signals that the journal says were to be sent. */
const sent = (): readonly string[] =>
	open.store
		.getState()
		.journal.flatMap(({kind, command}) => (kind === 'intent' && command?.includes('kill -s') ? [command] : []));

type Freezer = {
	readonly type: string;
	readonly options: string;
	readonly file: string;
	readonly words: readonly [string, string];
};
const V1: Freezer = {type: 'cgroup', options: '-o freezer', file: 'freezer.state', words: ['FROZEN', 'THAWED']};
const V2: Freezer = {type: 'cgroup2', options: '', file: 'cgroup.freeze', words: ['1', '0']};

/** Runs a script in a group of its own name below the mounted hierarchy, in a mount namespace that ends with it. */
const inGroup = ({type, options}: Freezer, script: string) =>
	spawnSync(
		'unshare',
		[
			'-m',
			'sh',
			'-ec',
			`mount -t ${type} ${options} lab /mnt; mkdir -p /mnt/relight-lab-${process.pid}; cd /mnt/relight-lab-${process.pid}; ${script}`,
		],
		{encoding: 'utf8'},
	);
const freeze = (freezer: Freezer, pid: number) =>
	expect(inGroup(freezer, `echo ${pid} >cgroup.procs; echo ${freezer.words[0]} >${freezer.file}`).stderr).toBe('');
const thaw = (freezer: Freezer) => inGroup(freezer, `echo ${freezer.words[1]} >${freezer.file}`);
const removeGroup = (freezer: Freezer) =>
	until(() => inGroup(freezer, `cd ..; rmdir relight-lab-${process.pid}`).status === 0, 5_000, 'the end of its group');
const has = (freezer: Freezer) => (): string | null => {
	const {status, stderr} = inGroup(freezer, `[ -e ${freezer.file} ]; cd ..; rmdir relight-lab-${process.pid}`);
	return status === 0 ? null : `there is no ${freezer.type} freezer here (${stderr.trim() || freezer.file})`;
};

lab(
	'a process frozen by a v1 group keeps its SIGKILL pending: told, and not sent again',
	all(canContain, has(V1)),
	async () => {
		const {outer, pid} = await start('sleep', '500');
		freeze(V1, outer);
		try {
			await until(async () => (await seen(pid))?.state === 'D');
			const key = identityKey((await seen(pid)) as Process);
			const first = await act(open, 'signal', `${key}:KILL`);
			expect([first.outcome, first.words]).toEqual(['failed', expect.stringContaining(`${pid} sent`)]);
			expect(first.words).toMatch(/not so after 20 s: frozen by its control group: thaw that first/);
			expect(await seen(pid)).toMatchObject({state: 'D', killPending: true});
			await expect(act(open, 'signal', `${key}:KILL`)).rejects.toThrow('SIGKILL is pending already');
			expect(sent()).toHaveLength(1);
		} finally {
			thaw(V1);
			// What was pending is heard now; else it is ended here, so that nothing stays in the group.
			await until(async () => (await seen(pid)) === undefined).finally(() => send(outer, 'SIGKILL'));
			await removeGroup(V1);
		}
	},
);

lab('a process frozen by a v2 group ends when it is asked to', all(canContain, has(V2)), async () => {
	const {outer, pid} = await start('sleep', '500');
	freeze(V2, outer);
	try {
		const process = (await seen(pid)) as Process;
		const {outcome, words} = await act(open, 'signal', `${identityKey(process)}:TERM`);
		expect(outcome, words).toBe('done');
		expect(await seen(pid)).toBeUndefined();
	} finally {
		thaw(V2);
		send(outer, 'SIGKILL');
		await removeGroup(V2);
	}
});

const lastPid = (): string | null =>
	existsSync('/proc/sys/kernel/ns_last_pid') ? null : 'this kernel gives out no chosen pid (no ns_last_pid)';

/** Another process under a pid that was somebody else's, as seen from outside. */
async function startAs(pid: number): Promise<number> {
	const parent = await start('sh', '-c', `echo ${pid - 1} >/proc/sys/kernel/ns_last_pid; sleep 500 & wait`);
	await until(() => childrenOf(parent.outer).length > 0);
	const other = childrenOf(parent.outer)[0] as number;
	expect(pidInside(other)).toBe(pid);
	return other;
}

lab('a pid that is somebody else by now is left alone', all(canContain, lastPid), async () => {
	const first = await start('sleep', '500');
	const key = identityKey((await seen(first.pid)) as Process);
	const plan = operationEntry('signal')?.plan(open.engine.situation(), `${key}:KILL`);
	if (!plan || isRefusal(plan)) throw new Error(plan?.refused);
	send(first.outer, 'SIGKILL');
	await until(() => first.child.exitCode !== null || first.child.signalCode !== null);
	const other = await startAs(first.pid);
	let said = '';
	const outcome = await open.engine.run(plan, event => {
		if (event.type === 'output') said += event.text;
	});
	expect([outcome, said]).toEqual(['done', `${first.pid} other`]);
	const now = await seen(first.pid);
	expect([now?.name, now?.state, now && identityKey(now) !== key]).toEqual(['sleep', 'S', true]);
	send(other, 'SIGKILL');
});

lab(
	'a pid that becomes somebody else between the look and the signal is left alone by a pidfd',
	all(canContain, lastPid, program('python3', 'python3')),
	async () => {
		const first = await start('sleep', '500');
		const {startTicks} = (await seen(first.pid)) as Process;
		const entry = join(folder, 'proc', String(first.pid));
		mkdirSync(entry, {recursive: true});
		writeFileSync(join(folder, 'proc/uptime'), readFileSync('/proc/uptime'));
		spawnSync('mkfifo', [join(entry, 'stat')]);
		const argv = [join(folder, 'proc'), readFileSync('/proc/uptime', 'utf8').split(' ')[0] ?? '', 'KILL'];
		const asked = spawn('nsenter', [
			...['-t', String(place.pid), '-m', '-p', 'python3', '-I', '-', ...argv],
			...[String(first.pid), String(startTicks)],
		]);
		let said = '';
		asked.stdout.on('data', piece => {
			said += piece;
		});
		asked.stdin.end(pidfd);
		// Open for reading: the pidfd is open by now, and what is compared is what was true then.
		const file = await openFile(join(entry, 'stat'), 'w');
		const stat = `${first.pid} (sleep) S ${'0 '.repeat(18)}${startTicks} 0 0`;
		send(first.outer, 'SIGKILL');
		await until(() => first.child.exitCode !== null || first.child.signalCode !== null);
		const other = await startAs(first.pid);
		await file.writeFile(stat);
		await file.close();
		await until(() => asked.exitCode !== null);
		expect([said, (await seen(first.pid))?.state]).toEqual([`${first.pid} gone\n`, 'S']);
		send(other, 'SIGKILL');
	},
);
