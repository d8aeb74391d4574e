import {execFileSync, spawn} from 'node:child_process';
import {afterAll, beforeAll, describe, expect, it} from 'vitest';
import {identityKey, identityOf} from '../../../src/ops/probes/probe.ts';
import {processOf} from '../../../src/ops/probes/process-table.ts';
import {type Process, type ProcessFacts, processes} from '../../../src/ops/probes/processes.ts';
import {answerOf, contextOf, fixture, look, makeTree, NOW_MS} from './support.ts';

type Parts = {
	uptime?: number;
	stat: string;
	cgroup?: string;
	wchan?: string;
	pending?: string;
	times?: string;
	boot?: string;
};

const answer = ({uptime = 1000, stat, cgroup = '', wchan = '', pending = '', times = '', boot = 'boot-1'}: Parts) =>
	answerOf({host: `${boot} ${uptime} 100\n`, stat, times, details: `${cgroup}\n${wchan}`, pending});

const line = (pid: number, name: string, {state = 'S', parent = 1, cpu = 0, ticks = 50} = {}) =>
	`${pid} (${name}) ${state} ${parent} ${pid} ${pid} 0 -1 0 0 0 0 0 ${cpu} 0 0 0 20 0 2 0 ${ticks} 0 10 0 0 0 0 0 0\n`;

const INIT = line(1, 'systemd', {parent: 0, ticks: 7});

const parse = (parts: Parts, last: ProcessFacts | null = null, nowMs = NOW_MS, pids: number[] = []) =>
	processes.parse(answer(parts), contextOf({last, hints: {nowMs, pids}}));

const WORKER: Process = {
	pid: 9,
	startTicks: 50,
	parentPid: 1,
	name: 'python3',
	state: 'S',
	sessionId: 9,
	groupId: 9,
	cpuTicks: 0,
	threads: 2,
	residentBytes: 40960,
	owner: {kind: 'unknown'},
	waitChannel: null,
	killPending: false,
	stuckSince: null,
};

describe('processOf', () => {
	const {processes: table} = parse({stat: INIT + [9, 12, 700].map(pid => line(pid, 'sleep')).join('')});

	it('finds an identity in a table that is sorted by pid, and nothing else', () => {
		expect(table.map(process => processOf(table, process))).toEqual(table);
		for (const pid of [0, 2, 10, 701])
			expect(processOf(table, {pid, startTicks: table[1]?.startTicks ?? 0})).toBeNull();
		expect(processOf(table, {pid: 9, startTicks: 1})).toBeNull();
		expect(processOf(table, {pid: 9, startTicks: null})).toBeNull();
		expect(processOf([], {pid: 9, startTicks: 1})).toBeNull();
	});

	it('goes by the key of a process, too', () => {
		expect(table.map(process => identityOf(identityKey(process)))).toEqual(
			table.map(({pid, startTicks}) => ({pid, startTicks})),
		);
		expect(identityOf('31337@?')).toEqual({pid: 31337, startTicks: null});
	});
});

describe('processes', () => {
	it('reads a table with owners and wait channels', () => {
		const facts = parse({
			stat: INIT + line(9, 'python3'),
			cgroup: '==> 1/cgroup <==\n0::/init.scope\n\n==> 9/cgroup <==\n0::/system.slice/vllm-x.service\n',
			wchan: '==> 1/wchan <==\ndo_epoll_wait\n==> 9/wchan <==\n0',
			times: '0m0.010s 0m0.000s\n0m0.020s 0m0.010s\n',
		});
		expect(facts).toEqual({
			bootId: 'boot-1',
			complete: true,
			ticksPerSecond: 100,
			uptimeTicks: 100_000,
			processes: [
				{
					...WORKER,
					pid: 1,
					name: 'systemd',
					parentPid: 0,
					sessionId: 1,
					groupId: 1,
					startTicks: 7,
					owner: {kind: 'unit', unit: 'init.scope'},
					waitChannel: 'do_epoll_wait',
				},
				{...WORKER, owner: {kind: 'unit', unit: 'vllm-x.service'}},
			],
			cpuFraction: new Map(),
			scanMs: 40,
			scannedAt: NOW_MS,
			readAtTicks: new Map([
				[1, 100_000],
				[9, 100_000],
			]),
		});
	});

	it('says that a table without the first process is not the whole', () => {
		expect(parse({stat: line(9, 'python3')}).complete).toBe(false);
	});

	it('keeps the same object for a process that printed the same bytes', () => {
		const first = parse({stat: INIT + line(9, 'python3')});
		const second = parse({uptime: 1002, stat: INIT + line(9, 'python3', {cpu: 100})}, first, NOW_MS + 2000);
		expect(second.processes[0]).toBe(first.processes[0]);
		expect(second.processes[1]).not.toBe(first.processes[1]);
		expect(second.cpuFraction).toEqual(
			new Map([
				['1@7', 0],
				['9@50', 0.5],
			]),
		);
	});

	it('takes a reused pid for another process', () => {
		const first = parse({stat: INIT + line(9, 'python3'), cgroup: '==> 9/cgroup <==\n0::/system.slice/x.service\n'});
		const second = parse({uptime: 1002, stat: INIT + line(9, 'bash', {ticks: 99})}, first, NOW_MS + 2000);
		expect(second.processes[1]).toEqual({...WORKER, name: 'bash', startTicks: 99});
		expect(second.cpuFraction.has('9@99')).toBe(false);
	});

	it('lets nothing of an earlier boot count', () => {
		const first = parse({stat: INIT, cgroup: '==> 1/cgroup <==\n0::/init.scope\n'});
		const second = parse({stat: INIT, boot: 'boot-2'}, first, NOW_MS + 9000);
		expect(second.processes[0]?.owner).toEqual({kind: 'unknown'});
	});

	it('scans the whole table no sooner than 300 times its cost; between, the hinted pids and the first process', () => {
		const first = {...parse({stat: INIT + line(9, 'python3')}), scanMs: 50};
		const script = (nowMs: number) => processes.script(contextOf({last: first, hints: {nowMs, pids: [9, 12]}})) ?? '';
		expect(processes.script(contextOf())).toContain('a=[0-9]*/stat; head -qc 4096 $a 2>/dev/null');
		expect(script(NOW_MS + 14_999)).toContain('f stat 1 9 12; head -qc 4096 $a 2>/dev/null');
		expect(script(NOW_MS + 15_000)).toContain('a=[0-9]*/stat; head -qc 4096 $a 2>/dev/null');
	});

	it('keeps what a short look did not ask, and drops what it asked in vain', () => {
		const first = {...parse({stat: INIT + line(9, 'python3') + line(12, 'bash') + line(30, 'idle')}), scanMs: 50};
		const second = parse({uptime: 1002, stat: INIT + line(9, 'python3', {cpu: 20})}, first, NOW_MS + 2000, [9, 12]);
		expect(second.processes.map(({pid}) => pid)).toEqual([1, 9, 30]);
		expect(second.processes[2]).toBe(first.processes[3]);
		expect(second.cpuFraction.get('9@50')).toBe(0.1);
		expect(second.scannedAt).toBe(NOW_MS);
		expect(second.scanMs).toBe(50);
		const third = parse(
			{uptime: 1010, stat: INIT + line(9, 'python3', {cpu: 20}) + line(30, 'idle', {cpu: 500})},
			second,
			NOW_MS + 10_000,
		);
		expect(third.cpuFraction.get('30@50')).toBe(0.5);
		expect(third.cpuFraction.get('9@50')).toBe(0);
	});

	it('asks for owners once per process, at most 48 a look', () => {
		const many = Array.from({length: 150}, (_, at) => line(at + 2, 'x')).join('');
		const first = parse({stat: INIT + many, cgroup: '==> 1/cgroup <==\n0::/init.scope\n'});
		const asked = /f cgroup ([^;]*)/.exec(processes.script(contextOf({last: first})) ?? '')?.[1]?.split(' ');
		expect([asked?.length, asked?.[0]]).toEqual([48, '2']);
	});
});

describe('a command line that cannot be read does not hide its process', () => {
	const stat = fixture('proc-stat/cmdline-hang.txt');
	const pending = fixture('proc-stat/cmdline-hang-status.txt').replace(/^/gm, '20262/status:');
	const parts = {
		stat: INIT + stat,
		cgroup: `==> 20262/cgroup <==\n${fixture('cgroup/system-unit.txt')}`,
		wchan: `==> 20262/wchan <==\n${fixture('proc-stat/cmdline-hang-wchan.txt')}`,
		pending: pending
			.split('\n')
			.filter(row => /(SigPnd|ShdPnd)/.test(row))
			.join('\n'),
	};

	it('shows state, wait channel, owner and the pending kill', () => {
		expect(parse(parts).processes[1]).toEqual({
			pid: 20262,
			startTicks: 1533100,
			parentPid: 20258,
			name: 'python3',
			state: 'D',
			sessionId: 20258,
			groupId: 20258,
			cpuTicks: 8535,
			threads: 64,
			residentBytes: 1234567 * 4096,
			owner: {kind: 'unit', unit: 'vllm-example.service'},
			waitChannel: 'ceph_osdc_wait_request',
			killPending: true,
			stuckSince: NOW_MS,
		});
	});

	it('counts as stuck since the first table in which it did not move', () => {
		const first = parse({stat: INIT + stat});
		expect(processes.script(contextOf({last: first}))).toMatch(/f wchan 20262 1[^;]*;.*f status 20262;/s);
		const second = parse({...parts, uptime: 1005}, first, NOW_MS + 5000);
		const third = parse({...parts, uptime: 1010}, second, NOW_MS + 10_000);
		expect([second.processes[1]?.stuckSince, third.processes[1]?.stuckSince]).toEqual([NOW_MS, NOW_MS]);
		const moved = parse({...parts, stat: INIT + stat.replace(' 8123 412 ', ' 8124 412 ')}, third, NOW_MS + 15_000);
		expect(moved.processes[1]?.stuckSince).toBe(NOW_MS + 15_000);
		const free = parse(
			{...parts, stat: INIT + stat.replace(') D', ') R'), wchan: '==> 20262/wchan <==\n0', pending: ''},
			moved,
			NOW_MS + 20_000,
		);
		expect(free.processes[1]?.stuckSince).toBeNull();
	});

	it('a sleeper that waits for a dead file server is stuck too', () => {
		const asleep = {stat: INIT + line(9, 'cat'), wchan: '==> 9/wchan <==\nrequest_wait_answer'};
		expect(parse(asleep).processes[1]?.stuckSince).toBe(NOW_MS);
		expect(parse({...asleep, wchan: '==> 9/wchan <==\ndo_nanosleep'}).processes[1]?.stuckSince).toBeNull();
	});
});

describe('on this machine', () => {
	const sleeper = spawn('sh', ['-c', 'exec sleep 60'], {stdio: 'ignore'});
	beforeAll(() => new Promise(resolve => setTimeout(resolve, 50)));
	afterAll(() => {
		sleeper.kill('SIGKILL');
	});

	it('finds a process of ours with its true start ticks, twice', async () => {
		const pid = sleeper.pid ?? 0;
		const truth = execFileSync('cat', [`/proc/${pid}/stat`], {encoding: 'utf8'});
		const ticks = Number(truth.slice(truth.lastIndexOf(')') + 2).split(' ')[19]);
		const first = await look(processes, contextOf());
		const seen = first.processes.find(process => process.pid === pid);
		expect(seen).toMatchObject({pid, startTicks: ticks, name: 'sleep', state: 'S', killPending: false});
		expect(first.processes.some(process => process.pid === 1)).toBe(true);
		const second = await look(processes, contextOf({last: first, hints: {nowMs: NOW_MS + 2000, pids: [pid]}}));
		expect(second.processes.find(process => process.pid === pid)).toBe(seen);
	});

	it('reads a table of made-up rows, newlines in names included', async () => {
		const tree = makeTree({
			'proc/sys/kernel/random/boot_id': 'boot-3\n',
			'proc/uptime': '50.25 1.0\n',
			'proc/1/stat': INIT,
			'proc/1/cgroup': '0::/init.scope\n',
			'proc/1/wchan': 'do_epoll_wait',
			'proc/9/stat': line(9, 'a\n1 (b) R 2'),
			'proc/9/cgroup': '0::/\n',
			'proc/9/wchan': 'request_wait_answer',
			'proc/9/status': 'SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n',
		});
		const roots = {proc: `${tree.root}/proc`};
		const first = await look(processes, contextOf(), roots);
		const row = {
			...WORKER,
			name: 'a\n1 (b) R 2',
			owner: {kind: 'none'},
			waitChannel: 'request_wait_answer',
			stuckSince: NOW_MS,
		};
		expect(first.processes[1]).toEqual(row);
		expect(first.uptimeTicks).toBe(5025);
		const second = await look(processes, contextOf({last: first, hints: {nowMs: NOW_MS + 2000}}), roots);
		expect(second.processes[1]).toEqual({...row, killPending: true});
		tree.remove();
	});
});
