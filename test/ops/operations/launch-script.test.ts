import {execFile} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, expect, test} from 'vitest';
import {type Launch, recordScript, startScript} from '../../../src/ops/operations/launch-script.ts';
import {until} from '../../support/until.ts';

const folders: string[] = [];
const pids: number[] = [];
afterEach(() => {
	for (const pid of pids.splice(0)) process.kill(pid, 'SIGKILL');
	for (const folder of folders.splice(0)) rmSync(folder, {recursive: true});
});

const run = (script: string, path = '/usr/bin:/bin') =>
	new Promise<{code: number; out: string}>(resolve => {
		const child = execFile('/bin/sh', ['-c', script], {env: {PROC: '/proc', PATH: path}}, (_error, out, err) =>
			resolve({code: child.exitCode ?? -1, out: out + err}),
		);
	});

function launchOf(argv: readonly string[]): Launch {
	const folder = mkdtempSync(join(tmpdir(), 'relight launch '));
	folders.push(folder);
	return {
		unit: 'x',
		argv,
		env: {GREETING: "it's $HOME"},
		log: join(folder, 'logs/one.log'),
		directories: [join(folder, 'dump')],
		recordPath: join(folder, 'record.json'),
		record: {launchId: 'abc', unit: null, port: 8000, argv, log: join(folder, 'logs/one.log'), at: 1},
	};
}

test('without systemd: started in a session of its own, argv and environment word for word, and found again by its record', async () => {
	const launch = launchOf([
		'/bin/sh',
		'-c',
		'printf "%s|" "$GREETING" "$@"; exec sleep 60',
		'sh',
		"a 'b' $c",
		'%n',
		'',
	]);
	expect(await run(startScript(launch, 'none'))).toEqual({code: 0, out: ''});
	const {code, out} = await run(recordScript(launch, 'none'));
	expect(code).toBe(0);
	const record = JSON.parse(readFileSync(launch.recordPath, 'utf8'));
	pids.push(record.pid);
	expect(out).toBe(`pid ${record.pid} started at tick ${record.startTicks}\n`);
	const stat = readFileSync(`/proc/${record.pid}/stat`, 'utf8');
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
	expect(record).toEqual({
		...launch.record,
		bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
		pid: record.pid,
		startTicks: Number(fields[19]),
	});
	expect(fields[3]).toBe(String(record.pid));
	await until(() => readFileSync(launch.log, 'utf8') === "it's $HOME|a 'b' $c|%n||");
});

test('without systemd: a launch that is sent twice begins once', async () => {
	const launch = launchOf(['/bin/sh', '-c', 'echo begun; exec sleep 60']);
	const codes = [await run(startScript(launch, 'none')), await run(startScript(launch, 'none'))];
	expect(codes).toEqual([
		{code: 0, out: ''},
		{code: 1, out: 'this launch was begun before\n'},
	]);
	await run(recordScript(launch, 'none'));
	pids.push(JSON.parse(readFileSync(launch.recordPath, 'utf8')).pid);
	await until(() => readFileSync(launch.log, 'utf8') === 'begun\n');
	const next = {...launch, record: {...launch.record, launchId: 'abd'}};
	expect((await run(startScript(next, 'none'))).code).toBe(0);
	await run(recordScript(next, 'none'));
	pids.push(JSON.parse(readFileSync(launch.recordPath, 'utf8')).pid);
});

test('a start that dies at once leaves no record', async () => {
	const launch = launchOf(['/bin/false']);
	await run(startScript(launch, 'none'));
	await new Promise(resolve => setTimeout(resolve, 200));
	expect((await run(recordScript(launch, 'none').replace('-lt 40', '-lt 3'))).code).toBe(1);
});

test.each([
	['ended well before anybody looked', 'inactive', true, 0, 'it has ended already, and well\n'],
	['failed', 'failed', true, 1, 'no process was found for this launch\n'],
	['ended although it was to stay', 'inactive', false, 1, 'no process was found for this launch\n'],
])('a unit that has %s', async (_, state, mayEnd, code, out) => {
	const launch = {...launchOf([]), mayEnd};
	const bin = mkdtempSync(join(tmpdir(), 'relight-systemctl-'));
	folders.push(bin);
	const answer = `#!/bin/sh\ncase $3 in MainPID) echo MainPID=0 ;; ActiveState) echo ActiveState=${state} ;; esac\n`;
	writeFileSync(join(bin, 'systemctl'), answer, {mode: 0o755});
	const script = recordScript(launch, 'systemd').replace('-lt 40', '-lt 1');
	expect(await run(script, `${bin}:/usr/bin:/bin`)).toEqual({code, out});
});
