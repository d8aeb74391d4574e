import {describe, expect, it} from 'vitest';
import {listenerOf, listensIn} from '../../../src/ops/formats/listeners.ts';
import {foldLines} from '../../../src/ops/formats/progress-lines.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {launchRecordPath, type ServerFacts, server} from '../../../src/ops/probes/server.ts';
import {offsetMinutesOf, readPhases} from '../../../src/ops/server/phases.ts';
import {failureIn} from '../../../src/ops/server/signatures.ts';
import type {ServerConfig} from '../../../src/ops/target.ts';
import {answerOf, contextOf, fixture, look, makeTree} from './support.ts';

const CONFIG: ServerConfig = {
	python: '/usr/bin/python3',
	tree: null,
	model: '/shared/model',
	port: 8000,
	env: {},
	args: [],
	log: '/logs',
	name: 'kimi',
	phaseLimitMs: 60_000,
};
const RECORD = {
	launchId: 'L-1',
	bootId: 'boot-1',
	pid: 1681,
	startTicks: 152_210,
	unit: null,
	port: 8000,
	argv: ['python3', '-m', 'sglang.launch_server'],
	log: '/logs/L-1.log',
	at: 1_769_875_800_000,
};
const at = (time: string) => Date.parse(`2026-01-31T${time}Z`);
const stat = (pid: number, name: string, {state = 'S', parent = 1, session = pid, ticks = 152_210} = {}) =>
	`${pid} (${name}) ${state} ${parent} ${pid} ${session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${ticks} 0 420 0 0 0 0 0 0\n`;

type Parts = Partial<Record<'boot' | 'record' | 'stat' | 'family' | 'port' | 'state' | 'log', string>>;
const parse = (parts: Parts, last: ServerFacts | null = null) =>
	server.parse(
		answerOf({
			boot: parts.boot ?? 'boot-1 0\n',
			record: parts.record ?? JSON.stringify(RECORD),
			stat: parts.stat ?? stat(1681, 'python3'),
			family: parts.family ?? '',
			port: parts.port ?? 'ss\n',
			log: `${parts.state ?? '1000 1769880000 +0000\n'}${parts.log ?? ''}`,
		}),
		contextOf({target: {server: CONFIG}, last}),
	);

describe('server', () => {
	it('is loading, with shards out of lines that carriage returns overwrote', () => {
		const text = fixture('sglang/loading.log');
		expect(parse({log: text})).toEqual({
			record: RECORD,
			proved: false,
			lastStart: null,
			process: 'alive',
			phase: 'loading',
			shards: {done: 13, total: 64},
			phaseSince: at('17:10:10'),
			failure: null,
			logSizeBytes: 1000,
			logModifiedAt: 1_769_880_000_000,
			tail: [
				"[2026-01-31 17:10:02 TP0] server_args=ServerArgs(model_path='/shared/model', tp_size=8)",
				'[2026-01-31 17:10:05 TP0] Init torch distributed begin.',
				'[2026-01-31 17:10:09 TP0] Init torch distributed ends. mem usage=1.02 GB',
				'[2026-01-31 17:10:10 TP0] Load weight begin. avail mem=94.10 GB',
				'Loading safetensors checkpoint shards:  20% Completed | 13/64 [00:06<00:24,  2.10it/s]',
			],
			portOwner: known(null),
			tokensPerSecond: null,
			cachedTokens: null,
			health: unknown('not asked'),
		});
	});

	it('does not ask for a log that did not move, and keeps what it told', () => {
		const first = parse({log: fixture('sglang/loading.log')});
		const script = (last: ServerFacts) => server.script(contextOf({target: {server: CONFIG}, last})) ?? '';
		expect(script(first)).toContain(`"$g" '1000 1769880000' `);
		expect(parse({}, first)).toEqual(first);
		const dead = parse({stat: ''}, first);
		expect([dead.process, dead.phase]).toEqual(['gone', 'dead']);
		expect(script(dead)).toContain(`"$g" '' `);
	});

	it('keeps the phase when a long log shows its end alone', () => {
		const first = parse({log: fixture('sglang/serving.log')});
		const later = parse({state: '2000 1769880009 +0000\n', log: 'INFO: GET /metrics\n'}, first);
		expect([later.phase, later.phaseSince, later.tokensPerSecond]).toEqual(['serving', at('17:22:00'), null]);
	});

	it('asks nothing where no server is configured', () => {
		expect(server.script(contextOf())).toBeNull();
	});

	it('a record that does not come is a complaint', () => {
		expect(() => parse({boot: 'boot-1 137\n'})).toThrow('server log: no answer in 2 s');
	});
});

describe('what the recorded process is now', () => {
	it.each<[string, Parts, ServerFacts['process']]>([
		['the same', {}, 'alive'],
		['no such pid', {stat: ''}, 'gone'],
		['another start', {stat: stat(1681, 'python3', {ticks: 9})}, 'other'],
		['another boot', {boot: 'boot-2 0\n'}, 'other'],
		['ended, not reaped', {stat: stat(1681, 'python3', {state: 'Z'})}, 'zombie'],
		['a shell with nothing in it', {stat: stat(1681, 'bash')}, 'wrapper only'],
		['a shell in a shell', {stat: stat(1681, 'bash'), family: stat(1682, 'bash', {parent: 1681})}, 'wrapper only'],
		[
			'a shell over a zombie',
			{stat: stat(1681, 'sh'), family: stat(1682, 'python3', {parent: 1681, state: 'Z'})},
			'wrapper only',
		],
		[
			'a shell with the server',
			{
				stat: stat(1681, 'bash'),
				family: stat(1682, 'bash', {parent: 1681}) + stat(1683, 'python3', {parent: 1682, session: 1681}),
			},
			'alive',
		],
		['no record', {record: ''}, 'none'],
		['a torn record', {record: '{"launchId":"L-1","pid":'}, 'none'],
	])('%s', (_, parts, process) => {
		const facts = parse(parts);
		expect(facts.process).toBe(process);
		expect(facts.phase === 'dead').toBe(process !== 'alive' && process !== 'none');
	});
});

describe('a pid of an earlier boot is never the server, and a busy port names its holder', () => {
	const now = {
		boot: 'aaaaaaaa-0000-0000-0000-000000000002 0\n',
		record: JSON.stringify({...RECORD, ...JSON.parse(fixture('sglang/pid-reused-run.json'))}),
		stat: fixture('proc-stat/pid-reused.txt'),
		state: '',
	};

	it('other boot id and other start time: not ours', () => {
		const facts = parse({...now, port: `ss\n${fixture('ss/listener.txt')}`});
		expect([facts.process, facts.phase, facts.record?.launchId, facts.portOwner]).toEqual([
			'other',
			'dead',
			'L-20260101-01',
			known({pid: 2200, name: 'VLLM::EngineCor'}),
		]);
	});

	it('the same boot would not make cron the server either', () => {
		expect(parse({...now, boot: 'aaaaaaaa-0000-0000-0000-000000000001 0\n'}).process).toBe('other');
	});

	it('TIME-WAIT alone is no listener', () => {
		expect(parse({...now, port: `ss\n${fixture('ss/time-wait.txt')}`}).portOwner).toEqual(known(null));
	});

	it('reads captured sockets, with a pid, without, and from the kernel', () => {
		expect(listenerOf(fixture('ss/iproute2-6.1-listener.txt'), 38471)).toEqual({pid: 4242, name: 'python3'});
		expect(listenerOf(fixture('ss/iproute2-6.1-no-pids.txt'), 2024)).toEqual({pid: null, name: ''});
		expect(listenerOf(fixture('ss/iproute2-6.1-listener.txt'), 471)).toBeNull();
		const table = fixture('ss/proc-net-tcp-6.18.txt');
		expect([listensIn(table, 38471), listensIn(table, 8000)]).toEqual([true, false]);
		expect(parse({port: `net\n${table}`}).portOwner).toEqual(known(null));
		expect(parse({port: ''}).portOwner).toEqual(unknown('no ss and no table of sockets'));
	});
});

describe('phases of a start', () => {
	const read = (name: string) => readPhases(foldLines(fixture(`sglang/${name}.log`)), 60);

	it('ready and serving, with tokens and cached tokens, in the time of the host', () => {
		const hour = 3_600_000;
		expect(read('serving')).toEqual({
			phase: 'serving',
			phaseSince: at('17:22:00') - hour,
			shards: {done: 64, total: 64},
			tokensPerSecond: 2500,
			cachedTokens: 64,
			startsAt: 0,
		});
	});

	it.each([
		['server_args=ServerArgs(', 'arguments'],
		['[2026-01-31 17:10:05 TP0] Init torch distributed ends.', 'distributed'],
		['Multi-thread loading shards: 50% Completed | 32/64 [', 'loading'],
		['[2026-01-31 17:10:05 TP0] KV Cache is allocated. #tokens: 1', 'memory'],
		['INFO:     Uvicorn running on http://0.0.0.0:8000', 'http'],
		['[2026-01-31 17:21:22] The server is fired up and ready to roll!', 'ready'],
		['nothing that is known', null],
	])('%s', (line, phase) => {
		expect(readPhases([line], 0).phase).toBe(phase);
	});

	it('interleaved ranks never take a phase back, a new start in the same file does', () => {
		const lines = foldLines(fixture('sglang/serving.log'));
		const late = 'Loading safetensors checkpoint shards: 100% Completed | 64/64 [00:29<00:00,  2.20it/s]';
		expect(readPhases([...lines, late], 0).phase).toBe('serving');
		const again = readPhases([...lines, lines[0] ?? ''], 0);
		expect([again.phase, again.shards, again.startsAt]).toEqual(['arguments', null, lines.length]);
	});

	it('knows offsets of clocks', () => {
		expect(['+0100', '-0330', '+0000', 'UTC'].map(offsetMinutesOf)).toEqual([60, -210, 0, null]);
	});
});

describe('why a server failed', () => {
	it('names the cause above its echoes', () => {
		expect(parse({log: fixture('sglang/squatter.log'), stat: ''}).failure).toEqual({
			class: 'GPU squatter',
			line: 'RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.',
			advice: 'another process holds GPU memory: stop its unit, then launch again',
		});
	});

	it.each([
		['torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB', 'CUDA out of memory'],
		['RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.', 'KV pool too small'],
		['OSError: [Errno 98] Address already in use', 'port taken'],
		['safetensors_rust.SafetensorError: Error while deserializing header: header too large', 'weights damaged'],
		['ValueError: please pass trust_remote_code=True', 'remote code not trusted'],
		['context_length (300000) is greater than the derived', 'context too long'],
		['NCCL error: unhandled system error', 'NCCL'],
		['RuntimeError: CUDA error: an illegal memory access was encountered', 'illegal access or Xid'],
		['Rank 3 scheduler died during initialization (exit code: -9)', 'killed at start'],
		['Rank 3 scheduler died during initialization (exit code: -7)', 'no space in /dev/shm'],
		['Subprocess scheduler_TP3 (pid=77) crashed with exit code -11', 'process crashed'],
		['Scheduler hit an exception: Traceback', 'exception'],
		['Received sigquit from a child process.', 'child died'],
		['Watchdog timeout (self.watchdog_timeout=300)', 'hung forward'],
		["Health check failed. Server couldn't get a response from detokenizer for last 20 seconds", 'health check'],
		['Initialization failed. warmup error: x', 'warm-up failed'],
		['Fatal Python error: Bus error', 'no space in /dev/shm'],
		['No modules matched hook spec', 'hook inactive'],
		['launch_server.py: error: unrecognized arguments: --x', 'unknown flag'],
	])('%s', (line, name) => {
		expect(failureIn([line])?.class).toBe(name);
	});

	it('takes no ordinary line for a failure', () => {
		const lines = foldLines(fixture('sglang/serving.log'));
		expect(failureIn([...lines, 'argv: --trust-remote-code --tp-size 8'])).toBeNull();
	});

	it('lets a failure of an earlier start in the same file rest', () => {
		const lines = `${fixture('sglang/squatter.log')}${fixture('sglang/loading.log')}`;
		expect(parse({log: lines}).failure).toBeNull();
	});
});

describe('on this machine', () => {
	it('finds a real process by its record, then a port, and reads the log', async () => {
		const tree = makeTree({'L-1.log': fixture('sglang/loading.log')});
		const {readFileSync, writeFileSync} = await import('node:fs');
		const row = readFileSync('/proc/self/stat', 'utf8');
		const startTicks = Number(row.slice(row.lastIndexOf(')') + 2).split(' ')[19]);
		const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
		const config = {...CONFIG, log: tree.root};
		const record = {...RECORD, bootId, pid: process.pid, startTicks, log: `${tree.root}/L-1.log`};
		writeFileSync(launchRecordPath(config), JSON.stringify(record, null, 1));
		const context = contextOf<ServerFacts>({target: {server: config}});
		const facts = await look(server, context);
		expect([facts.record, facts.process, facts.phase, facts.shards]).toEqual([
			record,
			'alive',
			'loading',
			{done: 13, total: 64},
		]);
		const again = await look(server, {...context, last: facts});
		expect({...again, portOwner: null}).toEqual({...facts, portOwner: null});
		const mark = `${launchRecordPath(config)}.proved`;
		writeFileSync(mark, 'an-earlier-launch\n');
		expect((await look(server, context)).proved).toBe(false);
		writeFileSync(mark, `${record.launchId}\n`);
		expect(await look(server, context)).toMatchObject({proved: true, record, lastStart: null});
		writeFileSync(`${launchRecordPath(config)}.start`, `phases L-0\n${fixture('sglang/serving.log')}`);
		const phaseMs = {
			arguments: 3_000,
			distributed: 5_000,
			loading: 120_000,
			memory: 550_000,
			http: 2_000,
			ready: 38_000,
		};
		expect(await look(server, context)).toMatchObject({proved: true, record, lastStart: {phaseMs, topology: null}});
		tree.remove();
	});

	it('tells nothing but "none" on a host without a launch', async () => {
		const tree = makeTree({'bin/ss': '#!/bin/sh\nexit 0\n'});
		const facts = await look(server, contextOf({target: {server: {...CONFIG, log: '/nonexistent'}}}), {
			path: `${tree.root}/bin:/usr/bin:/bin`,
		});
		expect(facts).toEqual({
			record: null,
			proved: false,
			lastStart: null,
			process: 'none',
			phase: 'none',
			shards: null,
			phaseSince: null,
			failure: null,
			logSizeBytes: null,
			logModifiedAt: null,
			tail: [],
			portOwner: known(null),
			tokensPerSecond: null,
			cachedTokens: null,
			health: unknown('not asked'),
		});
		tree.remove();
	});
});
