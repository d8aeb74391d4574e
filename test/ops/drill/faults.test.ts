import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {type Box, buildBox} from '../../../src/ops/drill/box.ts';
import type {FaultId} from '../../../src/ops/drill/faults.ts';
import {type ExtractionFacts, extraction} from '../../../src/ops/probes/extraction.ts';
import {contextOf} from '../probes/support.ts';
import {bundle, PART_SOURCE} from './support/part-program.ts';
import {inBox, until} from './support/shell.ts';

const UNIT = 'vllm-kimi-k25-int4.service';
const NOBODY = {signalled: new Set<string>(), units: new Set<string>(), scripts: new Set<string>()};

let program: Awaited<ReturnType<typeof bundle>>;
const boxes: Box[] = [];
beforeAll(async () => {
	program = await bundle(PART_SOURCE);
});
afterAll(async () => {
	for (const box of boxes) await box.close();
	program.remove();
});

async function ruined(...faults: FaultId[]): Promise<Box> {
	const box = await buildBox({faults, seed: 5, scale: 0.05, program: [process.execPath, program.file]});
	boxes.push(box);
	return box;
}

test('calls to a mount and a driver that hang are deaf to TERM, shown in D, and everything else answers', async () => {
	const box = await ruined('hung-mount', 'wedged-driver');
	const {volume, model, proc, disguises} = box.paths;
	expect(await inBox(box, `timeout -k 1 1 stat -f -c %a -- ${volume}`)).toMatchObject({code: 137, stdout: ''});
	expect(await inBox(box, `timeout -k 1 1 find ${volume}/eagle3`)).toMatchObject({code: 137, stdout: ''});
	expect(await inBox(box, `stat -c %F ${model}`)).toMatchObject({code: 0, stdout: 'directory\n'});
	void inBox(box, 'nvidia-smi -L');
	const shown = () => inBox(box, `grep -l '(nvidia-smi) D' ${proc}/[0-9]*/stat`);
	const {stdout} = await until(shown, ({code}) => code === 0);
	const pid = /(\d+)\/stat/.exec(stdout)?.[1];
	expect(readFileSync(`${proc}/${pid}/wchan`, 'utf8')).toBe('os_acquire_rwlock_write');
	expect(existsSync(`${disguises}/${pid}`)).toBe(true);
});

test('a first look at an output tree that gives no answer does not begin to list it', async () => {
	const box = await ruined('hung-mount');
	const context = contextOf<ExtractionFacts>({target: box.target});
	// What hangs keeps the pipe of its caller: into a file, as a lane reads up to a mark.
	const file = `${box.paths.temporary}/look`;
	const {stdout} = await inBox(box, `( ${extraction.script(context)}\n) >${file} 2>&1; cat ${file}`);
	const answer = {status: 0, stdout, stderr: '', bytes: Buffer.from(stdout)};
	expect(() => extraction.parse(answer, context)).toThrow(/no answer from .*hidden_states/);
	const names = readdirSync(box.paths.disguises).map(
		pid => JSON.parse(readFileSync(`${box.paths.disguises}/${pid}`, 'utf8')).disguise.name,
	);
	expect(names).toContain('stat');
	expect(names).not.toContain('find');
});

test('a full disk says how little is left, and only it', async () => {
	const box = await ruined('disk-full');
	const free = async (path: string) =>
		Number((await inBox(box, `stat -f -c '%S %b %f %a %c %d' -- ${path}`)).stdout.split(' ')[3]) * 4_096;
	expect(await free(box.paths.volume)).toBeLessThan(4e6);
	expect(await free(box.paths.shm)).toBeGreaterThan(4e6);
});

test('a link outside /etc is out of the reach of disable; a drop-in holds it', async () => {
	const box = await ruined('vendor-link');
	const wanted = async () => (await inBox(box, `systemctl show -p WantedBy --value ${UNIT}`)).stdout.trim();
	// Of two links from one target the manager names one.
	expect(await wanted()).toBe('multi-user.target');
	await inBox(box, `systemctl stop ${UNIT}; systemctl disable ${UNIT}`);
	expect(await wanted()).toBe('multi-user.target');
	expect((await box.score(NOBODY)).comesBack).toEqual([UNIT]);
	const drop = `${box.paths.unitFiles}/${UNIT}.d`;
	await inBox(box, `mkdir ${drop} && printf '[Unit]\\nConditionPathExists=/no/such\\n' >${drop}/50-blocked.conf`);
	await inBox(box, 'systemctl daemon-reload');
	expect((await box.score(NOBODY)).comesBack).toEqual([]);
});

test('a timer starts again what was stopped and disabled', async () => {
	const box = await ruined('timer');
	const state = async () => (await inBox(box, `systemctl show -p ActiveState --value ${UNIT}`)).stdout.trim();
	await inBox(box, `systemctl disable ${UNIT}; systemctl stop ${UNIT}`);
	await until(state, now => now === 'inactive');
	await until(state, now => now === 'active');
	expect((await inBox(box, `systemctl show -p TriggeredBy --value ${UNIT}`)).stdout).toBe('vllm-kimi-k25-int4.timer\n');
});

test('a taken port has a process of the box behind it, that answers', async () => {
	const box = await ruined('port-taken');
	const port = box.target.server?.port;
	const {stdout} = await inBox(box, `ss -ltnpH 'sport = :${port}'`);
	const pid = /users:\(\("python3",pid=(\d+)/.exec(stdout)?.[1];
	expect(readFileSync(`${box.paths.proc}/${pid}/cmdline`, 'utf8')).toBe(`python3\0-m\0http.server\0${port}\0`);
	expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('a directory listing\n');
});

test('spoilt samples count as whole by structure, as wrong by every byte, and as nobody’s fault before a run', async () => {
	const box = await ruined('corrupt-samples');
	const untouched = await box.score(NOBODY);
	expect(untouched).toMatchObject({corrupt: [], lost: []});
	// A run that had begun would have had to find them.
	await inBox(box, `echo '{}' >${box.paths.progress}`);
	const {corrupt} = await box.score(NOBODY);
	expect(corrupt.map(({index}) => index)).toEqual([90, 91, 92]);
	expect(corrupt.map(({reason}) => reason).join()).toMatch(/wrong checksum/);
});
