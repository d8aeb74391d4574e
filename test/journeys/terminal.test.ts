import {spawn, spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, afterEach, beforeAll, expect, test} from 'vitest';
import {closeTerminals, openScreen, type Screen} from '../support/terminal.ts';
import {until} from '../support/until.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');
const folder = mkdtempSync(join(tmpdir(), 'relight-journey-'));
const env = {XDG_STATE_HOME: folder, LANG: 'C.UTF-8'};
let config = '';
let box: ReturnType<typeof spawn>;

/** One box for all of these: they look and type, and change nothing on it. */
beforeAll(async () => {
	box = spawn(process.execPath, [PROGRAM, 'drill', '--box'], {stdio: ['ignore', 'pipe', 'inherit']});
	let text = '';
	box.stdout?.on('data', chunk => {
		text += chunk;
	});
	await until(() => text.includes('relight --config'));
	config = /^relight --config (.*)$/m.exec(text)?.[1] ?? '';
});

afterAll(async () => {
	box.kill('SIGTERM');
	await until(() => box.exitCode !== null);
	rmSync(folder, {recursive: true});
});

afterEach(closeTerminals);

async function open(size: {columns: number; rows: number} = {columns: 140, rows: 45}): Promise<Screen> {
	const screen = openScreen(['--config', config], {...size, env});
	await screen.see('comes back at boot', 30_000);
	return screen;
}

/** Ages and clocks move on; everything else must be the same. */
const still = (rows: readonly string[]) =>
	rows.map(row =>
		row
			.replace(/[\d:.,%]+[a-zA-Z]*/g, '#')
			.replace(/[▁▂▃▄▅▆▇█━─]+/g, '-')
			.replace(/ +/g, ' '),
	);

test('a walk through sizes leaves no stale row behind, and a size too small still says the worst thing', async () => {
	const screen = await open();
	for (const [columns, rows] of [
		[80, 24],
		[200, 60],
		[60, 15],
		[40, 8],
		[100, 30],
		[30, 3],
		[140, 45],
		[81, 24],
		[140, 45],
	] as const) {
		screen.resize(columns, rows);
		await screen.see('vllm', 5_000);
		await new Promise(resolve => setTimeout(resolve, 400));
		const before = still(screen.rows());
		await screen.press('Ctrl-L');
		await new Promise(resolve => setTimeout(resolve, 400));
		const after = still(screen.rows());
		const differing = after.filter((row, index) => row !== before[index]).length;
		expect({columns, rows, differing: differing <= 3}).toEqual({columns, rows, differing: true});
		expect(screen.rows().every(row => row.length <= columns)).toBe(true);
	}
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
});

test('a storm of keys leaves a console that answers, and nothing was asked of the host', async () => {
	const screen = await open();
	const harmless = [...'jkgG1234567zItspFwlnN?@A:', 'Tab', 'Esc', 'Up', 'Down', 'PgDn', 'PgUp'];
	for (let turn = 0; turn < 400; turn++)
		screen.burst(
			{Tab: '\t', Esc: '\u001b', Up: '\u001b[A', Down: '\u001b[B', PgDn: '\u001b[6~', PgUp: '\u001b[5~'}[
				harmless[turn % harmless.length] ?? ''
			] ??
				harmless[(turn * 7) % harmless.length] ??
				'',
		);
	for (let turn = 0; turn < 6; turn++) await screen.press('Esc');
	await screen.press('?');
	await screen.see(/one row down|one down|down/i);
	await screen.press('Esc', 'q');
	expect((await screen.exited).exitCode).toBe(0);
	const journal = readFileSync(
		join(folder, 'relight/journal', `ct129-${new Date().toISOString().slice(0, 10)}.ndjson`),
		'utf8',
	);
	expect(journal.split('\n').filter(line => line.includes('"kind":"intent"'))).toEqual([]);
});

test('keys that arrive in one write are all handled, and a paste never acts', async () => {
	const screen = await open();
	screen.burst('2jj');
	await screen.see(/\[2 PROC\]/);
	screen.burst('\u001b[200~o1int4\r\u001b[201~');
	await screen.see('a paste does nothing here');
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
});

test('a terminal that takes nothing for three seconds stops neither looks nor keys', async () => {
	const screen = await open();
	screen.stall();
	await new Promise(resolve => setTimeout(resolve, 3_000));
	screen.burst('3');
	await new Promise(resolve => setTimeout(resolve, 200));
	screen.goOn();
	await screen.see(/\[3 MOUNTS\]/, 5_000);
	// A process that had been stopped for three seconds would show old values.
	await until(() => Number(/age ([\d.]+)s/.exec(screen.rows()[0] ?? '')?.[1] ?? 99) < 2.5, 5_000, 'a fresh age');
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
});

test.each([
	['SIGTERM', 143],
	['SIGHUP', 129],
])('%s gives the terminal back', async (signal, code) => {
	const screen = await open({columns: 80, rows: 24});
	expect(screen.alternate).toBe(true);
	screen.kill(signal);
	expect((await screen.exited).exitCode).toBe(code);
	await until(() => !screen.alternate && screen.cursorVisible, 5_000, 'the terminal given back');
});

test('Ctrl-C never leaves at once; twice does', async () => {
	const screen = await open({columns: 80, rows: 24});
	await screen.press('Ctrl-C');
	await screen.see('Ctrl-C again leaves');
	await screen.press('Ctrl-C');
	expect((await screen.exited).exitCode).toBe(130);
});

test('escape codes in process names, mount points and logs never reach the terminal', async () => {
	const proc = join(folder, 'proc');
	const evil = '\u001b]0;owned\u0007\u001b[2J\u009b31m';
	const stat = (pid: number, name: string) =>
		`${pid} (${name}) S 1 ${pid} ${pid} 0 -1 4194560 9 0 0 0 5 5 0 0 20 0 1 0 ${pid * 10} 1000000 250 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n`;
	for (const part of ['1', '77', 'self', 'sys/kernel/random']) mkdirSync(join(proc, part), {recursive: true});
	writeFileSync(join(proc, '1/stat'), stat(1, 'systemd'));
	writeFileSync(join(proc, '77/stat'), stat(77, evil.slice(0, 15)));
	writeFileSync(join(proc, '77/cmdline'), `python3\0${evil}\0`);
	writeFileSync(join(proc, '77/cgroup'), `0::/system.slice/${evil}.service\n`);
	writeFileSync(join(proc, 'uptime'), '1000.00 2000.00\n');
	writeFileSync(join(proc, 'sys/kernel/random/boot_id'), '11111111-2222-3333-4444-555555555555\n');
	writeFileSync(
		join(proc, 'self/mountinfo'),
		`24 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 24 8:2 / /mnt/${evil} rw - ext4 /dev/sdb1 rw\n`,
	);
	const file = join(folder, 'hostile.yaml');
	writeFileSync(file, `hosts: {here: {routes: [{local: true, environment: {proc: ${proc}}}]}}\n`);
	const screen = openScreen(['--config', file], {env});
	await screen.see('systemd', 20_000);
	await screen.see('/mnt/');
	await screen.press('2', 'z');
	await screen.see(/ 77 S/);
	await new Promise(resolve => setTimeout(resolve, 2_500));
	expect(screen.raw()).not.toMatch(/\u001b\]0;owned|\u001b\[2J\u009b|\u009b31m/);
	await screen.press('z', 'q');
	expect((await screen.exited).exitCode).toBe(0);
});

test('without a terminal: one sentence, exit 64, no escape code', () => {
	const {status, stdout, stderr} = spawnSync(process.execPath, [PROGRAM], {env: {...process.env, ...env}, input: ''});
	expect({status, stdout: stdout.toString(), stderr: stderr.toString()}).toEqual({
		status: 64,
		stdout: '',
		stderr: 'relight: the console needs a terminal; without one use `relight status`\n',
	});
});

test('a wrong configuration: file, line, key, exit 64', () => {
	const file = join(folder, 'wrong.yaml');
	writeFileSync(file, 'hosts:\n  a:\n    routes:\n      - local: true\n    expect:\n      gpus: eight\n');
	const {status, stderr} = spawnSync(process.execPath, [PROGRAM, 'status', '--config', file], {
		env: {...process.env, ...env},
	});
	expect({status, stderr: stderr.toString()}).toEqual({
		status: 64,
		stderr: `${file}:6: hosts.a.expect.gpus: expected number, not string\n`,
	});
});

test('a configuration that changes under the console is taken over; a wrong one changes nothing and says so', async () => {
	const file = join(folder, 'changing.yaml');
	const write = (expect: string) =>
		writeFileSync(file, `hosts:\n  here:\n    routes:\n      - local: true\n    expect:\n      ${expect}\n`);
	write('mounts: {}');
	const screen = openScreen(['--config', file], {env});
	await screen.see('via local');
	write('gpus: many');
	await screen.see('CONFIG: changing.yaml:6: hosts.here.expect.gpus');
	write('mounts: {/nowhere/at/all: {}}');
	await screen.see('/nowhere/at/all is not mounted', 20_000);
	expect(screen.text()).not.toContain('CONFIG:');
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
});

test('where no journal can be kept nothing is started: one sentence', () => {
	const {status, stderr} = spawnSync(process.execPath, [PROGRAM, 'run', 'stop-service', '--yes', '--config', config], {
		env: {...process.env, XDG_STATE_HOME: '/etc/hostname'},
	});
	expect(status).toBe(64);
	expect(stderr.toString()).toMatch(
		/^relight: no journal can be kept in \/etc\/hostname\/relight \(ENOTDIR.*\): set XDG_STATE_HOME to a local disk\n$/,
	);
});

test('status of the box over the hypervisor: critical, and every reading with its state', () => {
	const {status, stdout} = spawnSync(process.execPath, [PROGRAM, 'status', '--config', config, '--json'], {
		env: {...process.env, ...env},
		maxBuffer: 64 << 20,
	});
	const seen = JSON.parse(stdout.toString());
	expect(status).toBe(2);
	expect(seen.schema).toBe('relight.status/1');
	expect(seen.route.state).toBe('up');
	expect(seen.alerts.map(({words}: {words: string}) => words)).toContain(
		'vllm-kimi-k25-int4.service is running and comes back at boot',
	);
	expect(Object.values(seen.readings).map(reading => (reading as {state: string}).state)).toEqual(
		Object.keys(seen.readings).map(() => 'ok'),
	);
	expect(seen.readings.gpus.value.cards).toHaveLength(8);
	expect(seen.dumps).toMatchObject({state: 'ok', way: 'source patch'});
});

test('a plan is shown and not run: dry run headless', () => {
	const {status, stdout} = spawnSync(
		process.execPath,
		[PROGRAM, 'run', 'stop-service', '--config', config, '--dry-run', '--json'],
		{env: {...process.env, ...env}},
	);
	const plan = JSON.parse(stdout.toString());
	expect({
		status,
		outcome: plan.outcome,
		commands: plan.steps.map(({command}: {command: string | null}) => command),
	}).toEqual({
		status: 0,
		outcome: 'dry-run',
		commands: [
			'systemctl stop --no-block -- vllm-kimi-k25-int4.service',
			'systemctl disable -- vllm-kimi-k25-int4.service',
			null,
		],
	});
});
