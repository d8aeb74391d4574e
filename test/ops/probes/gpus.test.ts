import {describe, expect, it} from 'vitest';
import {readQuery, smiNumber} from '../../../src/ops/formats/nvidia-smi.ts';
import {lostCard} from '../../../src/ops/formats/nvidia-trouble.ts';
import {ParseError} from '../../../src/ops/outcome.ts';
import {type GpuFacts, gpus} from '../../../src/ops/probes/gpus.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {answer, CARD, complaint, MIB, NOT_ASKED, parse, row} from './gpu-answers.ts';
import {contextOf, fixture, look, makeTree, NOW_MS, pathWith} from './support.ts';

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
			moreAt: NOW_MS,
		});
	});

	it('asks for the optional fields every 10 s, and keeps what they were in between', () => {
		const more = '1, 49, 81.52, 600.00, 2430, 5, 5, 16, 16, 0, Disabled, Enabled, 0x0000000000000024';
		const first = parse(row(1), {more});
		const at = (ms: number) => contextOf({last: first, hints: {nowMs: NOW_MS + ms}});
		expect(gpus.script(at(9_999))).not.toContain('power.draw');
		expect(gpus.script(at(10_000))).toContain('power.draw');
		const between = gpus.parse(answer(row(1, '900'), {more: ''}), at(2_000));
		expect(between).toEqual({
			...first,
			cards: first.cards.map(card => ({...card, memoryUsedBytes: known(900 * MIB)})),
		});
		const gone = gpus.parse(answer(row(1), {more: 'No answer'}), at(10_000));
		expect(gone.cards[0]?.powerWatts).toEqual(unknown('No answer'));
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
			moreAt: NOW_MS,
		});
	});

	it('a lost GPU says so whether one blank or two follow the full stop', () => {
		const text = fixture('nvidia-smi/gpu-is-lost.txt');
		const lost = {busId: '02:00', says: 'GPU is lost. Reboot the system to recover this GPU', advice};
		expect(lostCard(text)).toEqual(lost);
		expect(lostCard(text.replace('.  R', '. R'))).toEqual(lost);
		expect(parse(text, {status: 15})).toEqual({cards: [], lost: [lost], moreAt: NOW_MS});
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
		const context = contextOf<GpuFacts>({hints: {stuckPids: [4, 20262]}});
		const roots = {proc: `${tree.root}/proc`, dev: `${tree.root}/dev`, path: pathWith(tree.root)};
		await expect(look(gpus, context, roots)).rejects.toThrow(
			'an earlier query (pid 20262) is still stuck in the driver',
		);
		tree.remove();
	});
});
