import {existsSync, readdirSync, readFileSync, readlinkSync, statSync} from 'node:fs';
import {afterAll, beforeAll, describe, expect, test} from 'vitest';
import {readConfig} from '../../../src/ops/config/config.ts';
import {type Box, buildBox} from '../../../src/ops/drill/box.ts';
import {dimensions} from '../../../src/ops/drill/records.ts';
import {parseTopology} from '../../../src/ops/formats/topology.ts';
import {inBox, until} from './support/shell.ts';

const UNIT = 'vllm-kimi-k25-int4.service';
let box: Box;

beforeAll(async () => {
	box = await buildBox({seed: 7, scale: 0.05, program: [process.execPath, '/no/bundle.js']});
});
afterAll(() => box.close());

const shownPids = (): number[] => readdirSync(box.paths.proc).map(Number).filter(Number.isInteger);

describe('what the box is made of', () => {
	test('at full scale: a tenth of the incident', () => {
		const {records, groupSize, lastGroup, holes, truncated} = dimensions(1);
		expect({records, groupSize, lastGroup, holes, truncated}).toEqual({
			records: 3732,
			groupSize: 200,
			lastGroup: 43,
			holes: [414, 621, 828],
			truncated: [1001, 1840, 1841, 1842],
		});
	});

	test('the written configuration says the same as the target', () => {
		const read = readConfig(readFileSync(box.configFile, 'utf8'), box.configFile);
		expect(read).toEqual({ok: true, targets: [box.target]});
	});

	test('the same seed makes the same data', async () => {
		const twin = await buildBox({seed: 7, scale: 0.05, program: ['/bin/false']});
		expect(readFileSync(twin.paths.dataset).equals(readFileSync(box.paths.dataset))).toBe(true);
		await twin.close();
	});

	test('the script is gone from its volatile place and good at the operator', async () => {
		const {script} = box.target.extraction ?? {};
		const sum = await inBox(box, `sha256sum ${box.paths.goodScript}; ls ${box.paths.script}`);
		expect(sum.stdout.split(' ')[0]).toBe(script?.sha256);
		expect(sum.stderr).toContain('No such file');
	});

	test('done files are counted by the rule of the extractor, and all of them are right', async () => {
		const {lastGroup, groupSize, holes, truncated} = dimensions(0.05);
		const files = 9 * groupSize + lastGroup;
		const score = await box.score({scripts: new Set(), signalled: new Set(), units: new Set()});
		const [early = 0, ...newest] = truncated;
		expect(newest).toEqual([files - 3, files - 2, files - 1]);
		expect(score).toEqual({
			expected: box.target.extraction?.records,
			before: files - 3 - 4,
			after: files - 3 - 4,
			lost: [],
			corrupt: [],
			holes: [...holes, early],
			wrongKills: [],
			outside: [],
			acts: 0,
			comesBack: [UNIT],
		});
	});
});

describe('the process table', () => {
	test('shows processes of the box and nobody else', async () => {
		const shown = (): number[] => shownPids().filter(pid => pid !== 1);
		// What ended since the last look is taken away with the next one.
		const pids = await until(shown, all => all.every(pid => existsSync(`/proc/${pid}/fd/3`)));
		expect(pids.length).toBeGreaterThanOrEqual(11);
		for (const pid of pids) expect(readlinkSync(`/proc/${pid}/fd/3`)).toBe(box.paths.leash);
		expect(pids).not.toContain(process.pid);
	});

	test('tells the true pid and start ticks under made-up names', () => {
		for (const pid of shownPids().filter(each => each !== 1)) {
			const fields = (text: string): string[] => text.slice(text.lastIndexOf(')') + 2).split(' ');
			const shown = readFileSync(`${box.paths.proc}/${pid}/stat`, 'latin1');
			expect(fields(shown)[19]).toBe(fields(readFileSync(`/proc/${pid}/stat`, 'latin1'))[19]);
			expect(Number(shown.split(' ')[0])).toBe(pid);
			expect(fields(shown)).toHaveLength(50);
		}
	});

	test('names holders of the devices by their links', async () => {
		const {stdout} = await inBox(box, 'find "$PROC"/[0-9]*/fd -lname "$DEV/nvidia[0-9]" | wc -l');
		expect(Number(stdout)).toBe(9);
	});

	test('a program that was started in the box appears, and goes when it ends', async () => {
		const run = await inBox(box, 'systemd-run --unit=short -- sleep 0.8; systemctl show -p MainPID --value short');
		const pid = Number(run.stdout);
		await until(shownPids, pids => pids.includes(pid));
		expect(readFileSync(`${box.paths.proc}/${pid}/cgroup`, 'utf8')).toBe('0::/system.slice/short.service\n');
		await until(shownPids, pids => !pids.includes(pid));
	});
});

describe('nvidia-smi', () => {
	test('answers a query of any fields, in the order asked', async () => {
		const {stdout} = await inBox(box, 'nvidia-smi --query-gpu=index,memory.used,name --format=csv,noheader,nounits');
		const row = (index: number): string => `${index}, 77621, NVIDIA RTX PRO 6000 Blackwell Server Edition`;
		expect(stdout).toBe(`${Array.from({length: 8}, (_, index) => row(index)).join('\n')}\n`);
	});

	test('prints headers and units as the tool does', async () => {
		const {stdout} = await inBox(box, 'nvidia-smi --query-gpu=memory.total,temperature.gpu --format=csv | head -n 2');
		expect(stdout).toMatch(/^memory.total \[MiB\], temperature.gpu\n97887 MiB, \d+\n$/);
	});

	test('tells how the cards are linked', async () => {
		const {cards, links} = parseTopology((await inBox(box, 'nvidia-smi topo -m')).stdout);
		const of = (word: string) => links.filter(link => link.word === word).length;
		expect([cards, links.length, of('NODE'), of('SYS')]).toEqual([8, 28, 12, 16]);
	});

	test('refuses a field it does not know with the tool’s sentence and status 2', async () => {
		const {code, stdout} = await inBox(box, 'nvidia-smi --query-gpu=index,nonsense --format=csv');
		expect({code, stdout}).toEqual({code: 2, stdout: 'Field "nonsense" is not a valid field to query.\n\n'});
	});
});

describe('systemctl', () => {
	test('shows the service nobody wanted: running, and coming back at boot', async () => {
		const {stdout} = await inBox(
			box,
			`systemctl show -p Id,ActiveState,SubState,UnitFileState,WantedBy,Restart ${UNIT}`,
		);
		expect(stdout.trim().split('\n').sort()).toEqual([
			'ActiveState=active',
			`Id=${UNIT}`,
			'Restart=on-failure',
			'SubState=running',
			'UnitFileState=enabled',
			'WantedBy=multi-user.target',
		]);
	});

	test('a unit that does not exist reads as success, but not-found', async () => {
		const {code, stdout} = await inBox(box, 'systemctl show -p LoadState,Result nope.service');
		expect({code, lines: stdout.trim().split('\n').sort()}).toEqual({
			code: 0,
			lines: ['LoadState=not-found', 'Result=success'],
		});
	});

	test('a killed main process brings the unit back two seconds later', async () => {
		const main = async (): Promise<number> =>
			Number((await inBox(box, `systemctl show -p MainPID --value ${UNIT}`)).stdout);
		const before = await main();
		await inBox(box, `kill -9 ${before}`);
		const state = async (): Promise<string> =>
			(await inBox(box, `systemctl show -p SubState --value ${UNIT}`)).stdout.trim();
		await until(state, now => now === 'auto-restart');
		await until(state, now => now === 'running');
		expect(await main()).not.toBe(before);
		const {wrongKills} = await box.score({scripts: new Set(), signalled: new Set(), units: new Set()});
		expect(wrongKills).toEqual([expect.stringMatching(/^python3 \(\d+@\d+\) by SIGKILL$/)]);
	});

	test('stop and disable end it for good, and the memory comes back a little later', async () => {
		const mask = await inBox(box, `systemctl mask ${UNIT}`);
		expect(mask.stderr).toContain('already exists');
		expect((await inBox(box, `systemctl stop --no-block ${UNIT} && systemctl disable ${UNIT}`)).code).toBe(0);
		const show = async (): Promise<string> =>
			(await inBox(box, `systemctl show -p ActiveState,MainPID,WantedBy,UnitFileState ${UNIT}`)).stdout
				.trim()
				.split('\n')
				.sort()
				.join(' ');
		await until(show, text => text === 'ActiveState=inactive MainPID=0 UnitFileState=disabled WantedBy=');
		const used = async (): Promise<string> =>
			(await inBox(box, 'nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits')).stdout.trim();
		expect(await until(used, text => text.split('\n').every(each => each === '4'))).toBe(Array(8).fill('4').join('\n'));
		expect(statSync(`${box.paths.cgroups}/system.slice/${UNIT}/cgroup.procs`).size).toBe(0);
		const named = {scripts: new Set<string>(), signalled: new Set<string>(), units: new Set([UNIT])};
		expect(await box.score(named)).toMatchObject({wrongKills: {length: 1}, comesBack: []});
	});

	test('systemd-run passes arguments and environment as they are, and a name cannot be taken twice', async () => {
		const log = `${box.paths.temporary}/run.log`;
		const start = `systemd-run --unit=twice -p StandardOutput=append:${log} --setenv='A=one two' -- sh -c 'echo "$$A|$$1"; sleep 5' sh "x  'y'"`;
		expect((await inBox(box, start)).stderr).toBe('Running as unit: twice.service\n');
		await until(
			() => readFileSync(log, 'utf8'),
			text => text.endsWith('\n'),
		);
		expect(readFileSync(log, 'utf8')).toBe("one two|x  'y'\n");
		const again = await inBox(box, start);
		expect(again.code).toBe(1);
		expect(again.stderr).toContain('was already loaded');
		expect((await inBox(box, 'systemctl stop twice')).code).toBe(0);
	});
});

describe('other tools', () => {
	test('dmesg tells of the full cluster before the remount, in time order', async () => {
		const {stdout} = await inBox(box, 'dmesg');
		const full = stdout.indexOf('FULL or reached pool quota');
		expect(full).toBeGreaterThan(0);
		expect(stdout.indexOf('Remounting filesystem read-only')).toBeGreaterThan(full);
		const times = stdout
			.trim()
			.split('\n')
			.map(line => Number(/^\[ *([\d.]+)\]/.exec(line)?.[1]));
		expect(times).toEqual([...times].sort((a, b) => a - b));
	});

	test('pct wants its two dashes', async () => {
		expect(await inBox(box, 'pct exec 129 env')).toMatchObject({code: 255, stdout: ''});
		expect(await inBox(box, 'pct exec 129 -- echo in')).toMatchObject({code: 0, stdout: 'in\n'});
		expect(await inBox(box, 'pct status 129')).toMatchObject({code: 0, stdout: 'status: running\n'});
	});

	test('tools that kill by name are not in the box', async () => {
		expect((await inBox(box, 'pkill python3')).code).toBe(127);
		expect((await inBox(box, 'journalctl -k')).code).toBe(1);
	});
});
