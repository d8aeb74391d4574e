import {Complaint} from '../../../src/ops/outcome.ts';
import {type Gpu, type GpuFacts, gpus} from '../../../src/ops/probes/gpus.ts';
import {known, unknown} from '../../../src/ops/probes/probe.ts';
import {answerOf, contextOf} from './support.ts';

export const MIB = 1024 ** 2;
export const NOT_ASKED = unknown('no answer');

/** Answer of a look: the core query's text, and what else the script sends. */
export const answer = (core: string, parts: {status?: number; more?: string; kernel?: string; nodes?: string} = {}) =>
	answerOf({
		core,
		'core-status': `${parts.status ?? 0}\n`,
		more: parts.more ?? '',
		'more-status': '0\n',
		kernel: parts.kernel ?? '',
		nodes: parts.nodes ?? '',
	});

export const parse = (core: string, parts: Parameters<typeof answer>[1] = {}, last: GpuFacts | null = null) =>
	gpus.parse(answer(core, parts), contextOf({last}));

export const complaint = (core: string, parts: Parameters<typeof answer>[1] = {}): Complaint => {
	try {
		parse(core, parts);
	} catch (error) {
		if (error instanceof Complaint) return error;
		throw error;
	}
	throw new Error('no complaint');
};

export const row = (index: number, used = '310', name = 'NVIDIA RTX PRO 6000') =>
	`${index}, GPU-0${index}, 00000000:0${index}:00.0, 97887, ${used}, 3, 41, ${name}`;

export const CARD: Gpu = {
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
