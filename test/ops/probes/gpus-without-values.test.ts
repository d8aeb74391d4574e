import {describe, expect, it} from 'vitest';
import {readQuery, smiNumber} from '../../../src/ops/formats/nvidia-smi.ts';
import {isFree} from '../../../src/ops/probes/held-memory.ts';
import type {HolderFacts} from '../../../src/ops/probes/holders.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {CARD, parse} from './gpu-answers.ts';
import {fixture} from './support.ts';

const GIB = 1024 ** 3;

describe('words instead of values are unknown, with the word', () => {
	const fields =
		'index,uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,fan.speed,power.draw,ecc.errors.uncorrected.volatile.total,name';

	it('reads every spelling, with brackets and without', () => {
		const {rows, notes} = readQuery(fixture('nvidia-smi/na-values.csv'), fields.split(','));
		expect(notes).toEqual([]);
		const numbers = rows.map(cells =>
			['memory.used', 'fan.speed', 'power.draw', 'ecc.errors.uncorrected.volatile.total'].map(name =>
				smiNumber(cells.get(name)),
			),
		);
		expect(numbers).toEqual([
			[known(77617), unknown('[N/A]'), known(81.52), known(0)],
			[known(4), known(30), unknown('[Not Supported]'), unknown('[N/A]')],
			[unknown('[Unknown Error]'), unknown('N/A'), unknown('[Insufficient Permissions]'), unknown('[n/a]')],
		]);
	});

	it('unknown memory is not free memory, and a card that needs a reset is not offered', () => {
		const text = '1, GPU-01, 00000000:01:00.0, 97887, [Unknown Error], [GPU requires reset], [Unknown Error], X';
		const card = parse(text).cards[0];
		expect(card).toEqual({
			...CARD,
			name: 'X',
			memoryUsedBytes: unknown('[Unknown Error]'),
			busyPercent: unknown('[GPU requires reset]'),
			temperatureCelsius: unknown('[Unknown Error]'),
			needsReset: true,
		});
		expect(card && isFree(card, NOBODY)).toBe(false);
		expect(card && isFree({...card, needsReset: false}, NOBODY)).toBe(false);
		expect(isFree(CARD, NOBODY)).toBe(true);
	});
});

const NOBODY: HolderFacts = {bootId: 'b', holders: [], driverList: 'none', sweptAt: 0, sweepMs: 0, searched: []};

describe('a board without memory of its own uses that of the system', () => {
	it('accepts header and units', () => {
		const {rows, notes} = readQuery(fixture('nvidia-smi/unified-memory-with-header.csv'), []);
		expect(notes).toEqual([]);
		expect(rows.map(cells => [smiNumber(cells.get('utilization.gpu')), smiNumber(cells.get('memory.used'))])).toEqual([
			[known(0), unknown('[N/A]')],
			[known(2), unknown('[N/A]')],
		]);
		const apps = readQuery(fixture('nvidia-smi/unified-memory-apps-with-header.csv'), []);
		expect(apps.rows).toEqual([
			new Map([
				['pid', '4211'],
				['used_gpu_memory', '23456 MiB'],
			]),
		]);
	});

	it('takes total and available from meminfo, and "free" from the holders', () => {
		const header =
			'index, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu, name';
		const line = '0, GPU-00, 0000000F:01:00.0, [N/A], [N/A], 2 %, 38, NVIDIA GB10';
		const kernel = fixture('nvidia-smi/unified-memory-meminfo.txt');
		const card = parse(`${header}\n${line}`, {kernel}).cards[0];
		expect(card).toEqual({
			...CARD,
			index: 0,
			uuid: 'GPU-00',
			busId: 'f:01:00',
			name: 'NVIDIA GB10',
			memoryTotalBytes: known(127601452 * 1024),
			memoryUsedBytes: known((127601452 - 61234568) * 1024),
			sharedMemory: true,
			busyPercent: known(2),
			temperatureCelsius: known(38),
		});
		expect(((127601452 * 1024) / GIB).toFixed(1)).toBe('121.7');
		expect(card && isFree(card, NOBODY)).toBe(true);
		const holder = {pid: 4211, startTicks: 1, memory: [], devices: ['nvidia0'], driverName: ''};
		expect(card && isFree(card, {...NOBODY, holders: [holder]})).toBe(false);
	});
});
