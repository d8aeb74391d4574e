import {describe, expect, it} from 'vitest';
import {readQuery, smiNumber} from '../../../src/ops/formats/nvidia-smi.ts';
import {lostCard} from '../../../src/ops/formats/nvidia-trouble.ts';
import {Complaint, ParseError} from '../../../src/ops/outcome.ts';
import {type Gpu, type GpuFacts, gpus} from '../../../src/ops/probes/gpus.ts';
import {isFree} from '../../../src/ops/probes/held-memory.ts';
import type {HolderFacts} from '../../../src/ops/probes/holders.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {answerOf, contextOf, fixture, look, makeTree, pathWith} from './support.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const NOT_ASKED = unknown('no answer');

/** Answer of a look: the core query's text, and what else the script sends. */
const answer = (core: string, parts: {status?: number; more?: string; kernel?: string; nodes?: string} = {}) =>
	answerOf({
		core,
		'core-status': `${parts.status ?? 0}\n`,
		more: parts.more ?? '',
		'more-status': '0\n',
		kernel: parts.kernel ?? '',
		nodes: parts.nodes ?? '',
	});

const parse = (core: string, parts: Parameters<typeof answer>[1] = {}, last: GpuFacts | null = null) =>
	gpus.parse(answer(core, parts), contextOf({last}));

const complaint = (core: string, parts: Parameters<typeof answer>[1] = {}): Complaint => {
	try {
		parse(core, parts);
	} catch (error) {
		if (error instanceof Complaint) return error;
		throw error;
	}
	throw new Error('no complaint');
};

const row = (index: number, used = '310', name = 'NVIDIA RTX PRO 6000') =>
	`${index}, GPU-0${index}, 00000000:0${index}:00.0, 97887, ${used}, 3, 41, ${name}`;

const CARD: Gpu = {
	index: 1,
	uuid: 'GPU-01',
	busId: '01:00',
	name: 'NVIDIA RTX PRO 6000',
	memoryTotalBytes: known(97887 * MIB),
	memoryUsedBytes: known(310 * MIB),
	sharedMemory: false,
	busyPercent: known(3),
	temperatureCelsius: known(41),
	slowdownCelsius: NOT_ASKED,
	powerWatts: NOT_ASKED,
	powerCapWatts: NOT_ASKED,
	smClockMhz: NOT_ASKED,
	pcieGeneration: NOT_ASKED,
	pcieGenerationMax: NOT_ASKED,
	pcieWidth: NOT_ASKED,
	pcieWidthMax: NOT_ASKED,
	eccUncorrected: NOT_ASKED,
	mig: NOT_ASKED,
	persistence: NOT_ASKED,
	throttle: NOT_ASKED,
	needsReset: false,
};

describe('gpus', () => {
	it('reads core and optional fields of one card', () => {
		const more = '1, 49, 81.52, 600.00, 2430, 5, 5, 16, 16, 0, Disabled, Enabled, 0x0000000000000024';
		expect(parse(row(1), {more})).toEqual({
			cards: [
				{
					...CARD,
					slowdownCelsius: known(90),
					powerWatts: known(81.52),
					powerCapWatts: known(600),
					smClockMhz: known(2430),
					pcieGeneration: known(5),
					pcieGenerationMax: known(5),
					pcieWidth: known(16),
					pcieWidthMax: known(16),
					eccUncorrected: known(0),
					mig: known(false),
					persistence: known(true),
					throttle: known(['power cap', 'thermal slowdown by software']),
				},
			],
			lost: [],
		});
	});

	it('keeps the core when an optional field is unknown to the driver, and asks without it next time', () => {
		const refused = 'Field "clocks.sm" is not a valid field to query.\n\n';
		const first = parse(row(1), {more: refused});
		expect(first.cards).toEqual([
			{
				...CARD,
				...Object.fromEntries(
					Object.entries(CARD)
						.filter(([, value]) => value === NOT_ASKED)
						.map(([key]) => [key, unknown('not asked')]),
				),
				smClockMhz: unknown('not a field of this driver'),
			},
		]);
		const script = gpus.script(contextOf({last: first}));
		expect(script).not.toContain('clocks.sm');
		expect(script).toContain('power.draw');
		const second = parse(row(1), {more: '1, 49, 81.52, 600.00, 5, 5, 16, 16, 0, [N/A], Enabled, 0x1'}, first);
		expect(second.cards[0]?.smClockMhz).toEqual(unknown('not a field of this driver'));
		expect(second.cards[0]?.powerCapWatts).toEqual(known(600));
		expect(second.cards[0]?.throttle).toEqual(known([]));
	});

	it('keeps commas in a name, which stands last', () => {
		expect(parse(row(1, '310', 'Card, with a comma')).cards[0]?.name).toBe('Card, with a comma');
	});

	it('names a line that does not fit', () => {
		expect(() => parse('one, two, three, four, five, six, seven, eight')).toThrow(ParseError);
		expect(() => smiNumber('12abc!')).toThrow(ParseError);
	});

	it('asks each query behind its own limit', () => {
		expect(gpus.script(contextOf())).toContain('timeout -k 1 5 nvidia-smi "--query-gpu=$1"');
	});
});

describe('a card that fell off the bus is kept apart from those that answer', () => {
	const advice =
		'read the kernel log for Xid 79, 119 or 154 of this card; killing processes will not help; a reboot or power cycle is the likely fix; do not relaunch on all GPUs';

	it('knows both spellings of the sentence', () => {
		const first = fixture('nvidia-smi/handle-unknown-error-with-blank.txt');
		const second = fixture('nvidia-smi/handle-unknown-error-without-blank.txt');
		expect([lostCard(first), lostCard(second)]).toEqual([
			{busId: '0b:00', says: 'Unknown Error', advice},
			{busId: '07:00', says: 'Unknown Error', advice},
		]);
	});

	it('keeps the rows around the sentence and reads no number from it', () => {
		const fields = ['index', 'uuid', 'name', 'memory.total', 'memory.used', 'utilization.gpu', 'temperature.gpu'];
		const {rows, notes} = readQuery(fixture('nvidia-smi/handle-unknown-error-among-rows.csv'), fields);
		expect(rows.map(cells => [cells.get('index'), cells.get('memory.used')])).toEqual([
			['0', '310'],
			['2', '9'],
		]);
		expect(notes.map(lostCard)).toEqual([{busId: '0b:00', says: 'Unknown Error', advice}]);
		const sentence = fixture('nvidia-smi/handle-unknown-error-with-blank.txt');
		expect(parse(`${row(1)}\n${sentence}`, {status: 255})).toEqual({
			cards: [CARD],
			lost: [{busId: '0b:00', says: 'Unknown Error', advice}],
		});
	});

	it('a lost GPU says so whether one blank or two follow the full stop', () => {
		const text = fixture('nvidia-smi/gpu-is-lost.txt');
		const lost = {busId: '02:00', says: 'GPU is lost. Reboot the system to recover this GPU', advice};
		expect(lostCard(text)).toEqual(lost);
		expect(lostCard(text.replace('.  R', '. R'))).toEqual(lost);
		expect(parse(text, {status: 15})).toEqual({cards: [], lost: [lost]});
	});
});

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

const NOBODY: HolderFacts = {bootId: 'b', holders: [], driverList: 'none', sweptAt: 0, sweepMs: 0};

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

describe('the tool says in words that it cannot', () => {
	it('a library upgraded under a loaded module is named with both versions', () => {
		const kernel = fixture('nvidia-smi/library-mismatch-module-version.txt');
		const text = fixture('nvidia-smi/library-mismatch.txt');
		const {says, advice} = complaint(text, {status: 18, kernel});
		expect(says).toBe('driver/library version mismatch: kernel module 570.86.15, library 570.124');
		expect(advice).toContain('do not restart a healthy server now');
		expect(complaint(text.split('\n')[0] ?? '', {status: 1}).says).toBe('driver/library version mismatch');
	});

	it('a container that lost its device access is told apart from a broken host', () => {
		const {says, advice} = complaint(fixture('nvidia-smi/nvml-unknown-error.txt'), {status: 255});
		expect(says).toBe('Failed to initialize NVML: Unknown Error');
		expect(advice).toContain('restart the container, not the host');
	});

	it.each([
		[
			"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure…",
			9,
			'the driver is not loaded',
		],
		['No devices were found', 6, 'no devices were found'],
		['Failed to initialize NVML: Insufficient Permissions', 4, 'insufficient permissions'],
		[
			'Failed to initialize NVML: GPU access blocked by the operating system',
			17,
			'Failed to initialize NVML: GPU access blocked by the operating system',
		],
		['', 124, 'no answer in 5 s'],
		['', 137, 'no answer in 5 s'],
		[
			"timeout: failed to run command 'nvidia-smi': No such file or directory",
			127,
			'command not found, and no NVIDIA device node',
		],
	])('%s', (text, status, says) => {
		expect(complaint(text, {status}).says).toBe(says);
	});

	it('a machine without a GPU gets a clear sentence', async () => {
		const tree = makeTree({'proc/meminfo': 'MemTotal: 1 kB\n', 'dev/null': ''});
		const roots = {proc: `${tree.root}/proc`, dev: `${tree.root}/dev`, path: '/usr/bin:/bin'};
		await expect(look(gpus, contextOf(), roots)).rejects.toThrow('command not found, and no NVIDIA device node');
		tree.remove();
	});
});

describe('for real, with a stand-in for the tool', () => {
	it('runs both queries and keeps the core when the second is refused', async () => {
		const tree = makeTree({
			'bin/nvidia-smi': `#!/bin/sh\ncase $1 in *pci.bus_id*) echo '${row(1)}' ;; *) echo 'Field "power.draw" is not a valid field to query.'; exit 2 ;; esac\n`,
			'proc/meminfo': 'MemTotal: 1 kB\nMemAvailable: 1 kB\n',
			'dev/nvidia0': '',
		});
		const facts = await look(gpus, contextOf(), {
			proc: `${tree.root}/proc`,
			dev: `${tree.root}/dev`,
			path: pathWith(tree.root),
		});
		expect(facts.cards[0]?.memoryUsedBytes).toEqual(known(310 * MIB));
		expect(facts.cards[0]?.powerWatts).toEqual(unknown('not a field of this driver'));
		tree.remove();
	});

	it('starts no second query while an earlier one is stuck in the driver', async () => {
		const stat = fixture('proc-stat/cmdline-hang.txt').replace('(python3)', '(nvidia-smi)');
		const tree = makeTree({
			'bin/nvidia-smi': '#!/bin/sh\necho started >&2\n',
			'proc/20262/stat': stat,
			'dev/null': '',
		});
		const context = contextOf<GpuFacts>({hints: {pids: [4, 20262]}});
		const roots = {proc: `${tree.root}/proc`, dev: `${tree.root}/dev`, path: pathWith(tree.root)};
		await expect(look(gpus, context, roots)).rejects.toThrow(
			'an earlier query (pid 20262) is still stuck in the driver',
		);
		tree.remove();
	});
});
