import {type ChildProcess, execFile, execFileSync, spawn, spawnSync} from 'node:child_process';
import {copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {open} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, describe, expect, test} from 'vitest';
import program from '../../../src/ops/operations/pidfd.py';
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
			signalScript(
				'TERM',
				BOOT,
				[right, {pid: wrong.pid, startTicks: wrong.startTicks + 1}, {pid: 4_000_000, startTicks: 1}],
				null,
			),
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
		expect((await run(signalScript('TERM', BOOT, [one], null))).out).toBe(`${one.pid} sent\n`);
	}
	rmSync(folder, {recursive: true});
});

test('after a boot nothing is sent at all', async () => {
	const one = sleeper();
	const {code, out} = await run(signalScript('KILL', '00000000-0000-0000-0000-000000000000', [one], null));
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
		return (await run(`PROC=${root}\n${signalScript('TERM', BOOT, [one], null)}`)).out;
	};
	expect(await seen(1)).toBe(`${one.pid} ended\n`);
	expect(one.child.signalCode).toBeNull();
	expect(await seen(9)).toBe(`${one.pid} sent\n`);
	await until(() => one.child.signalCode === 'SIGTERM');
	rmSync(root, {recursive: true});
});

const ASK = 'import os, signal, sys; os.pidfd_open; signal.pidfd_send_signal; print(sys.executable)';
const python = spawnSync('python3', ['-c', ASK], {encoding: 'utf8'}).stdout?.trim() ?? '';

describe.skipIf(python === '')('through the configured Python', () => {
	let folder = '';
	const at = (name: string) => join(folder, name);
	/** A program in the place of the configured Python. */
	const instead = (script: string): string => {
		writeFileSync(at('python'), `#!/bin/sh\n${script}\n`, {mode: 0o755});
		return at('python');
	};
	beforeEach(() => {
		folder = mkdtempSync(join(tmpdir(), 'relight-pidfd-'));
	});
	afterEach(() => rmSync(folder, {recursive: true, force: true}));

	test('the whole script, as the plan shows it', () => {
		expect(
			signalScript(
				'TERM',
				'b',
				[
					{pid: 41, startTicks: 7},
					{pid: 42, startTicks: 8},
				],
				'/opt/my python',
			),
		).toBe(
			[
				'set -f',
				'read -r b <"$PROC/sys/kernel/random/boot_id"; [ "$b" = b ] || { echo "other boot: $b"; exit 4; }',
				"d=' '",
				'read -r u r <"$PROC/uptime"',
				'py() {',
				`exec timeout -k 1 4 '/opt/my python' -I -S - "$PROC" "$u" TERM 41 7 42 8 2>&1 <<'RELIGHT'`,
				`${program}RELIGHT`,
				'}',
				"w='/opt/my python gave no answer'; IFS='",
				"'; for l in $({ py & } | timeout 5 cat); do",
				"  case $l in [0-9]*' sent' | [0-9]*' gone' | [0-9]*' other' | [0-9]*' ended') ;; *) w=$l; continue ;; esac",
				`  [ "$d" = ' ' ] && echo 'by pidfd'; echo "$l"; d="$d\${l% *} "`,
				'done; unset IFS',
				`[ "$d" = ' 41 42 ' ] || echo "by pid and start ticks: $w"`,
				...signalScript(
					'TERM',
					'b',
					[
						{pid: 41, startTicks: 7},
						{pid: 42, startTicks: 8},
					],
					null,
				)
					.split('\n')
					.slice(3),
			].join('\n'),
		);
	});

	test.each(['/bin/sh', '/bin/bash'])(
		'the right process gets it by pidfd, the wrong one does not (%s)',
		async shell => {
			const right = sleeper();
			const wrong = sleeper();
			const targets = [right, {pid: wrong.pid, startTicks: wrong.startTicks + 1}, {pid: 4_000_000, startTicks: 1}];
			const {out} = await run(signalScript('TERM', BOOT, targets, python), shell);
			expect(out).toBe(`by pidfd\n${right.pid} sent\n${wrong.pid} other\n4000000 gone\n`);
			await until(() => right.child.signalCode === 'SIGTERM');
			expect(wrong.child.signalCode).toBeNull();
		},
	);

	test('one that ends between the look and the signal is told as gone', async () => {
		const one = sleeper();
		const stat = readFileSync(`/proc/${one.pid}/stat`);
		mkdirSync(at(String(one.pid)));
		execFileSync('mkfifo', [at(`${one.pid}/stat`)]);
		writeFileSync(at('uptime'), readFileSync('/proc/uptime'));
		const argv = ['-I', '-', folder, readFileSync('/proc/uptime', 'utf8').split(' ')[0] ?? '', 'TERM'];
		const asked = spawn(python, [...argv, String(one.pid), String(one.startTicks)]);
		let said = '';
		asked.stdout.on('data', piece => {
			said += piece;
		});
		asked.stdin.end(program);
		// Opened by a reader: its pidfd is open, and what it will compare is what was true then.
		const file = await open(at(`${one.pid}/stat`), 'w');
		one.child.kill('SIGKILL');
		await until(() => one.child.signalCode !== null);
		await file.writeFile(stat);
		await file.close();
		await until(() => asked.exitCode !== null);
		expect([said, asked.exitCode]).toEqual([`${one.pid} gone\n`, 0]);
	});

	test('a zombie is told as ended, as the shell tells it', async () => {
		const one = sleeper();
		const fields = readFileSync(`/proc/${one.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
		mkdirSync(at(`sys/kernel/random`), {recursive: true});
		mkdirSync(at(String(one.pid)));
		writeFileSync(at('sys/kernel/random/boot_id'), BOOT);
		writeFileSync(at('uptime'), readFileSync('/proc/uptime'));
		writeFileSync(at(`${one.pid}/stat`), `${one.pid} (a) b) ${['Z', ...fields.slice(1)].join(' ')}`);
		const {out} = await run(`PROC=${folder}\n${signalScript('TERM', BOOT, [one], python)}`);
		expect([out, one.child.signalCode]).toEqual([`by pidfd\n${one.pid} ended\n`, null]);
	});

	test.each([
		['is missing', () => at('nothing'), /by pid and start ticks: .*No such file/],
		[
			'is too old',
			() => instead(`${python} -c 'import os, sys\ndel os.pidfd_open\nexec(sys.stdin.read())' "$@"`),
			/has no pidfd/,
		],
		[
			'is refused by the kernel',
			() =>
				instead(`shift 3; ${python} -c 'import os, sys\ndef no(pid): raise PermissionError(1, "Operation not permitted")
os.pidfd_open = no\nexec(sys.stdin.read())' "$@"`),
			/no pidfd here: Operation not permitted/,
		],
		[
			'says nothing and ends',
			() => instead('cat >/dev/null; exit 3'),
			/by pid and start ticks: .*python gave no answer/,
		],
	])('what a Python that %s does not do, the shell does', async (_, path, words) => {
		const one = sleeper();
		const {out} = await run(signalScript('TERM', BOOT, [one], path()));
		const [first, ...rest] = out.trimEnd().split('\n');
		expect([first, rest]).toEqual([expect.stringMatching(words), [`${one.pid} sent`]]);
		await until(() => one.child.signalCode === 'SIGTERM');
	});

	test('one that fails half way leaves the rest to the shell, and nobody is asked twice', async () => {
		const [first, second] = [sleeper(), sleeper()];
		const broken = instead(`${python} -I - "$4" "$5" "$6" "$7" "$8"; echo broken`);
		const {out} = await run(signalScript('TERM', BOOT, [first, second], broken));
		expect(out).toBe(`by pidfd\n${first.pid} sent\nby pid and start ticks: broken\n${second.pid} sent\n`);
		await until(() => first.child.signalCode === 'SIGTERM' && second.child.signalCode === 'SIGTERM');
	});

	test('one that never ends, not even by force, costs its limit and no more', async () => {
		const one = sleeper();
		const began = Date.now();
		const {out} = await run(signalScript('TERM', BOOT, [one], instead("trap '' TERM; setsid sleep 20 & sleep 20")));
		expect(out).toMatch(new RegExp(`^by pid and start ticks: .*gave no answer\\n${one.pid} sent\\n$`));
		expect(Date.now() - began).toBeLessThan(9_000);
	});

	test('one that wakes after the shell has gone on sends nothing', () => {
		const one = sleeper();
		const since = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) - 4;
		const argv = ['-I', '-', '/proc', String(since), 'KILL', String(one.pid), String(one.startTicks)];
		const {stdout, stderr} = spawnSync(python, argv, {input: program, encoding: 'utf8'});
		expect([stdout, stderr, one.child.signalCode]).toEqual(['', 'Python came too late\n', null]);
	});
});
