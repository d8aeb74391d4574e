import {type ChildProcess, execFile, spawn} from 'node:child_process';
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, expect, test} from 'vitest';
import {signalScript} from '../../../src/ops/operations/signal-script.ts';
import {until} from '../../support/until.ts';

const BOOT = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const children: ChildProcess[] = [];
afterEach(() => {
	for (const child of children.splice(0)) child.kill('SIGKILL');
});

function sleeper(program = '/bin/sleep'): {pid: number; startTicks: number; child: ChildProcess} {
	const child = spawn(program, ['60'], {stdio: 'ignore'});
	children.push(child);
	const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
	return {pid: child.pid ?? 0, startTicks: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]), child};
}

const run = (script: string, shell = '/bin/sh') =>
	new Promise<{code: number; out: string}>(resolve => {
		const child = execFile(shell, ['-c', script], {env: {PROC: '/proc', PATH: '/usr/bin:/bin'}}, (_error, out) =>
			resolve({code: child.exitCode ?? -1, out}),
		);
	});

test.each(['/bin/sh', '/bin/bash'])(
	'the right process gets it, the wrong one does not, and a gone one is told (%s)',
	async shell => {
		const right = sleeper();
		const wrong = sleeper();
		const {out} = await run(
			signalScript('TERM', BOOT, [
				right,
				{pid: wrong.pid, startTicks: wrong.startTicks + 1},
				{pid: 4_000_000, startTicks: 1},
			]),
			shell,
		);
		expect(out).toBe(`${right.pid} sent\n${wrong.pid} other\n4000000 gone\n`);
		await until(() => right.child.signalCode === 'SIGTERM');
		expect(wrong.child.signalCode).toBeNull();
	},
);

test('a name made to look like fields changes nothing', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'relight-name-'));
	for (const name of ['a) R 1 (b', 'x\ny', '* $(id)']) {
		const program = join(folder, name);
		copyFileSync('/bin/sleep', program);
		const one = sleeper(program);
		expect((await run(signalScript('TERM', BOOT, [one]))).out).toBe(`${one.pid} sent\n`);
	}
	rmSync(folder, {recursive: true});
});

test('after a boot nothing is sent at all', async () => {
	const one = sleeper();
	const {code, out} = await run(signalScript('KILL', '00000000-0000-0000-0000-000000000000', [one]));
	expect({code, out}).toEqual({code: 4, out: `other boot: ${BOOT}\n`});
	expect(one.child.signalCode).toBeNull();
});

test('a zombie holds nothing, unless only its first thread has ended', async () => {
	const root = mkdtempSync(join(tmpdir(), 'relight-proc-'));
	const one = sleeper();
	const stat = readFileSync(`/proc/${one.pid}/stat`, 'utf8');
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
	fields[0] = 'Z';
	mkdirSync(join(root, 'sys/kernel/random'), {recursive: true});
	writeFileSync(join(root, 'sys/kernel/random/boot_id'), `${BOOT}\n`);
	mkdirSync(join(root, String(one.pid)));
	const seen = async (threads: number) => {
		fields[17] = String(threads);
		writeFileSync(join(root, `${one.pid}/stat`), `${one.pid} (sleep) ${fields.join(' ')}`);
		return (await run(`PROC=${root}\n${signalScript('TERM', BOOT, [one])}`)).out;
	};
	expect(await seen(1)).toBe(`${one.pid} ended\n`);
	expect(one.child.signalCode).toBeNull();
	expect(await seen(9)).toBe(`${one.pid} sent\n`);
	await until(() => one.child.signalCode === 'SIGTERM');
	rmSync(root, {recursive: true});
});
