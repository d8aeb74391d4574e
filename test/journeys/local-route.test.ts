import {type ChildProcess, spawn, spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {parse, stringify} from 'yaml';
import {until} from '../support/until.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');
const folder = mkdtempSync(join(tmpdir(), 'relight-local-'));
const env = {...process.env, XDG_STATE_HOME: folder};
const bystanders: ChildProcess[] = [];
let box: ChildProcess;
let config = '';

/** The box's programs and roots, but no SSH in between: the same code over the local route. */
beforeAll(async () => {
	box = spawn(process.execPath, [PROGRAM, 'drill', '--box', '--seed', '7'], {stdio: ['ignore', 'pipe', 'inherit']});
	let text = '';
	box.stdout?.on('data', chunk => {
		text += chunk;
	});
	await until(() => text.includes('relight --config'));
	const written = parse(readFileSync(/^relight --config (.*)$/m.exec(text)?.[1] ?? '', 'utf8'));
	const [name] = Object.keys(written.hosts);
	const host = written.hosts[name ?? ''];
	host.routes = [{local: true, environment: host.routes.at(-1).environment}];
	config = join(folder, 'relight.yaml');
	writeFileSync(config, stringify(written));
});

afterAll(async () => {
	for (const each of bystanders) each.kill('SIGKILL');
	box.kill('SIGTERM');
	await until(() => box.exitCode !== null);
	rmSync(folder, {recursive: true});
});

const relight = (...args: string[]) => {
	const {status, stdout} = spawnSync(process.execPath, [PROGRAM, ...args, '--config', config, '--json'], {
		env,
		maxBuffer: 64 << 20,
	});
	return {status, told: JSON.parse(stdout.toString())};
};

test('nothing outside the box is listed, planned or signalled, whatever its name', async () => {
	const lookalikes = join(folder, 'VLLM::Worker_TP0');
	spawnSync('cp', ['/bin/sleep', lookalikes]);
	bystanders.push(spawn(lookalikes, ['600'], {stdio: 'ignore'}), spawn('/bin/sleep', ['600'], {stdio: 'ignore'}));
	const {told} = relight('status');
	const seen: number[] = told.readings.processes.value.processes.map(({pid}: {pid: number}) => pid);
	expect(seen.length).toBeGreaterThan(8);
	for (const {pid} of bystanders) expect(seen).not.toContain(pid);
	const {told: plan} = relight('run', 'recover', '--dry-run');
	for (const {pid} of bystanders) expect(JSON.stringify(plan)).not.toContain(`${pid}`);
});

test('the whole recovery over the local route, every intent in the journal before its outcome', () => {
	const {status, told} = relight('run', 'recover', '--yes');
	expect({status, outcome: told.outcome}).toEqual({status: 0, outcome: 'done'});
	for (const each of bystanders)
		expect({exit: each.exitCode, signal: each.signalCode}).toEqual({exit: null, signal: null});
	const [file] = readdirSync(join(folder, 'relight/journal'));
	const entries = readFileSync(join(folder, 'relight/journal', file ?? ''), 'utf8')
		.trim()
		.split('\n')
		.map(line => JSON.parse(line));
	const commands = entries
		.filter(({kind, command}) => kind === 'intent' && command)
		.map(({command}) => command.split('\n')[0]);
	expect(commands[0]).toBe('systemctl stop --no-block -- vllm-kimi-k25-int4.service');
	expect(commands.length).toBeGreaterThanOrEqual(8);
	const {status: again, told: second} = relight('run', 'recover', '--yes');
	expect({again, words: second.words}).toEqual({again: 4, words: 'nothing to recover: every check holds'});
}, 120_000);

test('the running extraction is stopped after its sample in flight, and every stored file is whole', () => {
	const {status, told} = relight('run', 'stop-extractor', '--yes');
	expect({status, outcome: told.outcome}).toEqual({status: 0, outcome: 'done'});
	const {told: seen} = relight('status');
	const {inventory, run} = seen.readings.extraction.value;
	expect({suspects: inventory.suspects, alive: run.alive, state: run.state}).toEqual({
		suspects: [],
		alive: false,
		state: 'stopped',
	});
	expect(inventory.present).toBeGreaterThan(1_840);
}, 60_000);

test('a file is put in place on this machine with the sum that was sent', () => {
	const good = join(folder, 'good copy.py');
	writeFileSync(good, 'print("x")\n');
	const destination = join(folder, "it's here/script.py");
	const here = join(folder, 'files.yaml');
	const sum = createHash('sha256').update('print("x")\n').digest('hex');
	writeFileSync(
		here,
		stringify({hosts: {here: {routes: [{local: true}]}}, files: [{source: good, destination, sha256: sum}]}),
	);
	const {status} = spawnSync(process.execPath, [PROGRAM, 'run', 'restore-files', '--config', here, '--yes'], {env});
	expect({status, text: readFileSync(destination, 'utf8')}).toEqual({status: 0, text: 'print("x")\n'});
});
