import {symlinkSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {readQuery} from '../../../src/ops/formats/nvidia-smi.ts';
import type {GpuFacts} from '../../../src/ops/probes/gpus.ts';
import {heldWithoutProcess} from '../../../src/ops/probes/held-memory.ts';
import {type HolderFacts, holders, mergeHolders, readLinks, readPanel} from '../../../src/ops/probes/holders.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {answerOf, contextOf, fixture, look, makeTree, NOW_MS, pathWith} from './support.ts';

const MIB = 1024 ** 2;
const APPS = ['gpu_uuid', 'pid', 'used_memory', 'process_name'];
const [UUID_1, UUID_2] = ['GPU-00000001-0000-0000-0000-000000000001', 'GPU-00000002-0000-0000-0000-000000000002'];

const answer = (parts: Partial<Record<'links' | 'apps' | 'status' | 'panel' | 'stat', string>>) =>
	answerOf({
		boot: 'boot-1 /dev\n',
		links: parts.links ?? '',
		times: '0m0.000s 0m0.010s\n0m0.020s 0m0.030s\n',
		apps: parts.apps ?? '',
		'apps-status': parts.status ?? '0\n',
		panel: parts.panel ?? '',
		stat: parts.stat ?? '',
	});

const stat = (pid: number, ticks: number, name = 'python3') =>
	`${pid} (${name}) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${ticks} 0 420 0 0 0 0 0 0\n`;

/** As far as these tests look at a card. */
const cards = (text: string): GpuFacts =>
	({
		cards: readQuery(text, ['index', 'uuid', 'memory.total', 'memory.used', 'utilization.gpu']).rows.map(row => ({
			index: Number(row.get('index')),
			uuid: row.get('uuid'),
			memoryTotalBytes: known(Number(row.get('memory.total')) * MIB),
			memoryUsedBytes: known(Number(row.get('memory.used')) * MIB),
			sharedMemory: false,
		})),
		lost: [],
	}) as unknown as GpuFacts;

describe('holders', () => {
	it('joins what the driver lists with who has a device open, by pid', () => {
		const facts = holders.parse(
			answer({
				links: '1402/fd /dev/nvidia-uvm\n1402/fd /dev/nvidia0\n1402/fd /dev/nvidiactl\n77/fd /dev/nvidiactl\n',
				apps: `${UUID_1}, 1402, 77617, python -c from x import a, b\n${UUID_2}, 1402, [N/A], python -c from x import a, b\n`,
				stat: stat(77, 12, 'a) R 1 (b') + stat(1402, 9001),
			}),
			contextOf(),
		);
		expect(facts).toEqual({
			bootId: 'boot-1',
			holders: [
				{pid: 77, startTicks: 12, memory: [], devices: ['nvidiactl'], driverName: ''},
				{
					pid: 1402,
					startTicks: 9001,
					memory: [
						{gpuUuid: UUID_1, usedBytes: known(77617 * MIB)},
						{gpuUuid: UUID_2, usedBytes: unknown('[N/A]')},
					],
					devices: ['nvidia-uvm', 'nvidia0', 'nvidiactl'],
					driverName: 'python -c from x import a, b',
				},
			],
			driverList: 'listed',
			sweptAt: NOW_MS,
			sweepMs: 60,
			searched: [],
		});
	});

	describe('between sweeps', () => {
		const last: HolderFacts = {
			bootId: 'boot-1',
			holders: [{pid: 9, startTicks: 1, memory: [], devices: ['nvidia0'], driverName: ''}],
			driverList: 'none',
			sweptAt: NOW_MS,
			sweepMs: 160,
			searched: [],
		};
		const at = (nowMs: number, more: Partial<HolderFacts> = {}, stuckPids: readonly number[] = []) =>
			contextOf({last: {...last, ...more}, hints: {nowMs, pids: [9, 12], stuckPids}});
		const script = (...args: Parameters<typeof at>) => holders.script(at(...args)) ?? '';
		const soon = NOW_MS + 2_000;

		it('searches all processes at first, then no sooner than 10 s or 400 times the cost', () => {
			expect(holders.script(contextOf())).toContain('find [0-9]*/fd -lname');
			expect(script(NOW_MS + 9_000, {sweepMs: 1})).toContain('find 12/fd -lname');
			expect(script(NOW_MS + 10_000, {sweepMs: 1})).toContain('find [0-9]*/fd -lname');
			expect(script(NOW_MS + 63_000)).toContain('find 12/fd -lname');
			expect(script(NOW_MS + 64_000)).toContain('find [0-9]*/fd -lname');
		});

		it('searches a hinted pid once, and what is held only where the driver is stuck', () => {
			expect(holders.parse(answer({stat: stat(9, 1)}), at(soon)).searched).toEqual([12]);
			expect(script(soon, {searched: [12]})).not.toContain('find ');
			expect(script(soon, {searched: [12]}, [77])).toContain('find 9/fd 12/fd -lname');
		});

		it('keeps the devices of the same process, and of no other one', () => {
			const kept = (parts: Parameters<typeof answer>[0]) => holders.parse(answer(parts), at(soon)).holders;
			expect(kept({stat: stat(9, 1)})).toEqual(last.holders);
			expect(kept({stat: stat(9, 2)})).toEqual([]);
			expect(kept({stat: ''})).toEqual([]);
			expect(holders.parse(answer({stat: stat(9, 1)}), at(soon, {bootId: 'boot-0'})).holders).toEqual([]);
			expect(holders.parse(answer({}), at(soon, {}, [77])).holders).toEqual([]);
		});
	});

	it('keeps device links when the driver does not answer', () => {
		const facts = holders.parse(
			answer({links: '1402/fd /dev/nvidia0\n', status: '137\n', stat: stat(1402, 9001)}),
			contextOf(),
		);
		expect(facts.driverList).toBe('no answer');
		expect(facts.holders).toEqual([{pid: 1402, startTicks: 9001, memory: [], devices: ['nvidia0'], driverName: ''}]);
	});

	it('refuses a link line that does not fit', () => {
		expect(() => readLinks('nonsense', '/dev')).toThrow('find: cannot read "nonsense"');
	});

	it('finds the holders in a real table of links, with their start ticks', async () => {
		const tree = makeTree({
			'bin/nvidia-smi': `#!/bin/sh\necho '${UUID_1}, 1402, 10, VLLM::Worker_TP0'\necho '${UUID_1}, 31337, 20, [Not Found]'\n`,
			'proc/sys/kernel/random/boot_id': 'boot-2\n',
			'proc/1402/stat': stat(1402, 9001),
			'proc/1402/fd/.keep': '',
			'proc/77/stat': stat(77, 5),
			'proc/77/fd/.keep': '',
			'dev/null': '',
		});
		symlinkSync(`${tree.root}/dev/nvidia0`, `${tree.root}/proc/1402/fd/7`);
		symlinkSync(`${tree.root}/dev/nvidia0`, `${tree.root}/proc/1402/fd/8`);
		symlinkSync(`${tree.root}/dev/null`, `${tree.root}/proc/77/fd/0`);
		const roots = {proc: `${tree.root}/proc`, dev: `${tree.root}/dev`, path: pathWith(tree.root)};
		const facts = await look(holders, contextOf(), roots);
		const seen = {
			bootId: 'boot-2',
			holders: [
				{
					pid: 1402,
					startTicks: 9001,
					memory: [{gpuUuid: UUID_1, usedBytes: known(10 * MIB)}],
					devices: ['nvidia0'],
					driverName: 'VLLM::Worker_TP0',
				},
				{
					pid: 31337,
					startTicks: null,
					memory: [{gpuUuid: UUID_1, usedBytes: known(20 * MIB)}],
					devices: [],
					driverName: '[Not Found]',
				},
			],
			driverList: 'listed',
			sweptAt: NOW_MS,
			sweepMs: facts.sweepMs,
			searched: [],
		};
		expect(facts).toEqual(seen);
		const next = await look(holders, contextOf({last: facts, hints: {nowMs: NOW_MS + 2000}}), roots);
		expect(next).toEqual(seen);
		tree.remove();
	});
});

describe('an empty process panel in a container is not "nobody"', () => {
	it('an empty panel and "No running processes found" are different answers', () => {
		expect(readPanel(fixture('nvidia-smi/panel-empty.txt'))).toBe('unresolvable');
		expect(readPanel(fixture('nvidia-smi/panel-none.txt'))).toBe('none');
		const parse = (panel: string, last: HolderFacts | null = null) =>
			holders.parse(answer({apps: fixture('nvidia-smi/container-apps.csv'), panel}), contextOf({last})).driverList;
		expect(parse(fixture('nvidia-smi/panel-empty.txt'))).toBe('unresolvable');
		expect(parse(fixture('nvidia-smi/panel-none.txt'))).toBe('none');
		const last: HolderFacts = {
			bootId: 'boot-1',
			holders: [],
			driverList: 'unresolvable',
			sweptAt: 0,
			sweepMs: 0,
			searched: [],
		};
		expect(parse('', last)).toBe('unresolvable');
	});

	it('memory in use on both cards, holders not visible from here', () => {
		const nobody: HolderFacts = {
			bootId: 'b',
			holders: [],
			driverList: 'unresolvable',
			sweptAt: 0,
			sweepMs: 0,
			searched: [],
		};
		expect(heldWithoutProcess(cards(fixture('nvidia-smi/container-gpus.csv')), nobody)).toEqual([
			{gpuUuid: UUID_1, usedBytes: 77617 * MIB, pidsElsewhere: []},
			{gpuUuid: UUID_2, usedBytes: 77609 * MIB, pidsElsewhere: []},
		]);
	});
});

describe('memory charged to a pid that is not here is never offered for a kill', () => {
	it('has no start ticks, and the card counts as held without a process', () => {
		const {rows} = readQuery(fixture('nvidia-smi/missing-pid-apps.csv'), APPS);
		const uuid = 'GPU-00000006-0000-0000-0000-000000000006';
		const merged = mergeHolders([], rows, new Map([[1, 1]]));
		expect(merged).toEqual([
			{
				pid: 31337,
				startTicks: null,
				memory: [{gpuUuid: uuid, usedBytes: known(10142 * MIB)}],
				devices: [],
				driverName: '[Not Found]',
			},
		]);
		const facts: HolderFacts = {
			bootId: 'b',
			holders: merged,
			driverList: 'listed',
			sweptAt: 0,
			sweepMs: 0,
			searched: [],
		};
		expect(heldWithoutProcess(cards(fixture('nvidia-smi/missing-pid-gpus.csv')), facts)).toEqual([
			{gpuUuid: uuid, usedBytes: 10151 * MIB, pidsElsewhere: [31337]},
		]);
	});
});
