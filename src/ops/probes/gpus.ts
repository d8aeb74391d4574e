import {normaliseBusId} from '../formats/bus-id.ts';
import {readQuery, type SmiRow, saysReset, smiBytes, smiNumber, smiSwitch, smiThrottle} from '../formats/nvidia-smi.ts';
import {lostCard, troubleOf} from '../formats/nvidia-trouble.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {ParseError} from '../outcome.ts';
import {type Answer, type Known, known, type Probe, type ProbeContext, unknown} from './probe.ts';
import {stillStuck, stuckPid, unlessStuck} from './stuck-tool.ts';

/** Cards in the driver's order. `lost` cards are those the tool could only name in a sentence: they have no numbers. */
export type GpuFacts = {
	readonly cards: readonly Gpu[];
	readonly lost: readonly LostGpu[];
	/** When the optional fields were last asked for (epoch ms); 0 while the driver still refuses some of them. */
	readonly moreAt: number;
};

export type Gpu = {
	readonly index: number;
	readonly uuid: string;
	/** Normalised: lower case, no zero domain, no function: `0b:00`. */
	readonly busId: string;
	readonly name: string;
	readonly memoryTotalBytes: Known<number>;
	readonly memoryUsedBytes: Known<number>;
	/** Unified-memory boards: memory is the system's (`memory…` then holds meminfo's total and total − available). */
	readonly sharedMemory: boolean;
	readonly busyPercent: Known<number>;
	readonly temperatureCelsius: Known<number>;
	readonly slowdownCelsius: Known<number>;
	readonly powerWatts: Known<number>;
	readonly powerCapWatts: Known<number>;
	readonly smClockMhz: Known<number>;
	readonly pcieGeneration: Known<number>;
	readonly pcieGenerationMax: Known<number>;
	readonly pcieWidth: Known<number>;
	readonly pcieWidthMax: Known<number>;
	readonly eccUncorrected: Known<number>;
	readonly mig: Known<boolean>;
	readonly persistence: Known<boolean>;
	/** Active reasons in words, idle and none left out. */
	readonly throttle: Known<readonly string[]>;
	/** Card says it needs a reset: never offered for a launch, its unknown memory is not free memory. */
	readonly needsReset: boolean;
};

export type LostGpu = {readonly busId: string; readonly says: string; readonly advice: string};

/** Fields that every driver has. Free text last. */
const CORE = [
	'index',
	'uuid',
	'pci.bus_id',
	'memory.total',
	'memory.used',
	'utilization.gpu',
	'temperature.gpu',
	'name',
] as const;

/** Fields that some drivers do not have, with the property each one fills. `tlimit` is the distance to the slowdown. */
const OPTIONAL = {
	slowdownCelsius: 'temperature.gpu.tlimit',
	powerWatts: 'power.draw',
	powerCapWatts: 'power.limit',
	smClockMhz: 'clocks.sm',
	pcieGeneration: 'pcie.link.gen.current',
	pcieGenerationMax: 'pcie.link.gen.max',
	pcieWidth: 'pcie.link.width.current',
	pcieWidthMax: 'pcie.link.width.max',
	eccUncorrected: 'ecc.errors.uncorrected.volatile.total',
	mig: 'mig.mode.current',
	persistence: 'persistence_mode',
	throttle: 'clocks_throttle_reasons.active',
} as const;

type OptionalProperty = keyof typeof OPTIONAL;
const PROPERTIES = Object.keys(OPTIONAL) as OptionalProperty[];
const NOT_A_FIELD = 'not a field of this driver';
const MORE_EVERY_MS = 10_000;

const SECTIONS = ['core', 'core-status', 'more', 'more-status', 'kernel', 'nodes'] as const;

/**
 * Two queries, each behind its own limit: the core, and every 10 s the optional set without what this driver has refused
 * before. The second is skipped when the first gets no answer. Complaint in the tool's own words when no card could be read.
 */
export const gpus: Probe<GpuFacts> = {
	id: 'gpus',
	lane: 'driver',
	everyMs: 2000,
	limitMs: 14_000,
	capBytes: 262_144,
	script: context => {
		const more = `case $r in 124|137|126|127) ;; *) q index,${asked(context).join(',')} ;; esac`;
		return unlessStuck(
			'nvidia-smi',
			context.hints.stuckPids,
			[
				DEFINE_MARK,
				'q() { timeout -k 1 5 nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits 2>&1; r=$?; }',
				`${mark('core')}; q ${CORE.join(',')}`,
				`${mark('core-status')}; echo $r; c=$r`,
				`${mark('more')}; ${isMoreDue(context) ? more : ':'}`,
				`${mark('more-status')}; echo $r`,
				`${mark('kernel')}; ${needsKernel(context.last) ? '' : '[ $c = 0 ] || '}{ ${KERNEL}; }`,
				`${mark('nodes')}; for d in "$DEV"/nvidia[0-9]*; do [ -e "$d" ] && echo "\${d##*/}"; done; true`,
			].join('\n'),
		);
	},
	parse: parseGpus,
};

const KERNEL = `head -n 1 "$PROC/driver/nvidia/version" 2>/dev/null; grep -E '^Mem(Total|Available):' "$PROC/meminfo" 2>/dev/null`;

/** The module's version explains a failure, the system's memory stands in for that of a board without its own. */
const needsKernel = (last: GpuFacts | null): boolean =>
	last === null ||
	last.cards.length === 0 ||
	last.cards.some(card => !card.memoryTotalBytes.known || card.sharedMemory);

const isMoreDue = ({last, hints}: ProbeContext<GpuFacts>): boolean =>
	last === null || hints.nowMs - last.moreAt >= MORE_EVERY_MS;

/** The optional fields this driver is not known to refuse. */
function asked({last}: ProbeContext<GpuFacts>): string[] {
	return PROPERTIES.filter(property => !isRefused(last, property)).map(property => OPTIONAL[property]);
}

function isRefused(last: GpuFacts | null, property: OptionalProperty): boolean {
	const value = last?.cards[0]?.[property];
	return value !== undefined && !value.known && value.why === NOT_A_FIELD;
}

function parseGpus(answer: Answer, context: ProbeContext<GpuFacts>): GpuFacts {
	const stuck = stuckPid(answer.status, answer.stdout);
	if (stuck !== null) throw stillStuck(stuck);
	const sections = readSections('nvidia-smi', answer.stdout, SECTIONS);
	const core = readQuery(sections.core, CORE);
	const lost = core.notes.map(lostCard).filter(card => card !== null);
	if (core.rows.length === 0 && lost.length === 0) {
		const status = Number(sections['core-status']);
		const nodes = sections.nodes.split('\n').filter(node => node !== '');
		throw (
			troubleOf({status, notes: core.notes, moduleVersion: sections.kernel, nodes}) ??
			new ParseError('nvidia-smi', sections.core.trim())
		);
	}
	const fields = ['index', ...asked(context)];
	const more = readQuery(sections.more, fields);
	const refused = /Field "([^"]+)" is not a valid field/.exec(sections.more)?.[1] ?? null;
	const byIndex = new Map(more.rows.map(row => [row.get('index') ?? '', row]));
	const due = isMoreDue(context);
	return {
		cards: core.rows.map(row => {
			const extra = refused === null ? (byIndex.get(row.get('index') ?? '') ?? null) : null;
			const why = extra || refused !== null ? 'not asked' : (more.notes[0] ?? 'no answer');
			const gpu = toGpu(row, extra, {context, refused, why, meminfo: sections.kernel});
			return due
				? gpu
				: withOptionalOf(
						context.last?.cards.find(card => card.uuid === gpu.uuid),
						gpu,
					);
		}),
		lost,
		moreAt: due ? (refused === null ? context.hints.nowMs : 0) : (context.last?.moreAt ?? 0),
	};
}

/** Between two questions for them the optional fields stay as they were answered; a card new since then has none yet. */
function withOptionalOf(before: Gpu | undefined, gpu: Gpu): Gpu {
	if (!before) return gpu;
	const kept = Object.fromEntries(PROPERTIES.map(property => [property, before[property]]));
	return {...gpu, ...kept, needsReset: gpu.needsReset || before.needsReset};
}

type Surroundings = {
	readonly context: ProbeContext<GpuFacts>;
	readonly refused: string | null;
	readonly why: string;
	readonly meminfo: string;
};

function toGpu(row: SmiRow, extra: SmiRow | null, surroundings: Surroundings): Gpu {
	const {context, refused, why, meminfo} = surroundings;
	const index = Number(row.get('index'));
	const uuid = row.get('uuid') ?? '';
	if (!Number.isInteger(index) || uuid === '') throw new ParseError('nvidia-smi', [...row.values()].join(', '));
	const optional = <T>(property: OptionalProperty, read: (cell: string | undefined) => Known<T>): Known<T> => {
		if (isRefused(context.last, property) || OPTIONAL[property] === refused) return unknown(NOT_A_FIELD);
		return extra ? read(extra.get(OPTIONAL[property])) : unknown(why);
	};
	const temperatureCelsius = smiNumber(row.get('temperature.gpu'));
	const distance = optional('slowdownCelsius', smiNumber);
	const needsReset = saysReset(row) || (extra !== null && saysReset(extra));
	return {
		index,
		uuid,
		busId: normaliseBusId(row.get('pci.bus_id') ?? '') ?? '',
		name: row.get('name') ?? '',
		...memoryOf(row, needsReset, meminfo),
		busyPercent: smiNumber(row.get('utilization.gpu')),
		temperatureCelsius,
		slowdownCelsius:
			distance.known && temperatureCelsius.known
				? known(temperatureCelsius.value + distance.value)
				: notKnown(distance),
		powerWatts: optional('powerWatts', smiNumber),
		powerCapWatts: optional('powerCapWatts', smiNumber),
		smClockMhz: optional('smClockMhz', smiNumber),
		pcieGeneration: optional('pcieGeneration', smiNumber),
		pcieGenerationMax: optional('pcieGenerationMax', smiNumber),
		pcieWidth: optional('pcieWidth', smiNumber),
		pcieWidthMax: optional('pcieWidthMax', smiNumber),
		eccUncorrected: optional('eccUncorrected', smiNumber),
		mig: optional('mig', smiSwitch),
		persistence: optional('persistence', smiSwitch),
		throttle: optional('throttle', smiThrottle),
		needsReset,
	};
}

const notKnown = (value: Known<number>) => (value.known ? unknown('temperature unknown') : value);

/** A board without memory of its own says [N/A] in both columns; the system's memory is then the card's. */
function memoryOf(row: SmiRow, needsReset: boolean, meminfo: string) {
	const memoryTotalBytes = smiBytes(row.get('memory.total'));
	const memoryUsedBytes = smiBytes(row.get('memory.used'));
	const total = kibOf('MemTotal', meminfo);
	const available = kibOf('MemAvailable', meminfo);
	const none = [memoryTotalBytes, memoryUsedBytes].every(
		value => !value.known && /n\/a|not supported/i.test(value.why),
	);
	if (!none || needsReset || total === null || available === null)
		return {memoryTotalBytes, memoryUsedBytes, sharedMemory: false};
	return {memoryTotalBytes: known(total), memoryUsedBytes: known(total - available), sharedMemory: true};
}

function kibOf(name: string, meminfo: string): number | null {
	const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(meminfo)?.[1];
	return kib === undefined ? null : Number(kib) * 1024;
}
