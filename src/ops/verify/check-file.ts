import {closeSync, fstatSync, openSync, type Stats, statSync} from 'node:fs';
import {basename} from 'node:path';
import {type Container, type DataRange, openContainer, placeIn} from '../tensor/container.ts';
import {crc32, joinedCrc} from '../tensor/crc.ts';
import {DamagedFile, UnsupportedFile} from '../tensor/damage.ts';
import {type Dtype, ITEM_BYTES} from '../tensor/dtype.ts';
import {type RangeScan, scanRange} from '../tensor/scan.ts';
import {fileSource, type Source, windowed, windowRoom} from '../tensor/source.ts';
import {sampleIndex} from './names.ts';
import {layerAt, layerOf, type SampleShape, sampleShape} from './sample-shape.ts';
import type {SizeRules} from './size-rules.ts';
import {emptyMask, idsOf, layersAlike, wrongSideOfNorm} from './values.ts';
import {atLeast, type Findings, type Identity, type Level, type Suspect, suspect, type Verdict} from './verdict.ts';

export type CheckOptions = {
	readonly level: Level;
	/** Width of a state; null for any. */
	readonly hidden: number | null;
	readonly normWeight: Float32Array | null;
};

/** `sum`: CRC-32 of the whole file, of one that was read to its end and has no checksums of its own. */
type Sum = {readonly sum?: number};

export type CheckedFile = Findings & Sum & {readonly path: string; readonly identity: Identity};

/** Files are looked at one after the other, and nothing of one is kept. */
const ROOM = windowRoom();

/** Looks at one file. What stands in the way of that (gone, not to be read) is a verdict, too. */
export function checkFile(path: string, options: CheckOptions, rules: SizeRules): CheckedFile {
	let identity: Identity = {bytes: 0, mtimeMs: 0, inode: 0};
	let fd: number | null = null;
	try {
		const name = basename(path);
		if (options.level === 'stat') {
			identity = identityOf(statSync(path));
			const tokens = rules.tokensOf(name, identity.bytes);
			if (tokens !== null) return {path, identity, ...found({verdict: 'done'}, [], tokens)};
		}
		fd = openSync(path, 'r');
		const stat = fstatSync(fd);
		identity = identityOf(stat);
		const source = windowed(fileSource(fd, identity.bytes), ROOM);
		const findings = withHint(checkSource(source, name, options), stat, options.level);
		if (options.level === 'stat' && findings.verdict.verdict === 'done') rules.learn(source, name);
		const after = identityOf(fstatSync(fd));
		if (after.bytes === identity.bytes && after.mtimeMs === identity.mtimeMs) return {path, identity, ...findings};
		const words = 'changed while it was read';
		return {path, identity, ...findings, verdict: {verdict: 'unverifiable', reason: 'changing', words}};
	} catch (error) {
		if (!(error instanceof Error && 'code' in error)) throw error;
		return {
			path,
			identity,
			...found({verdict: 'unverifiable', reason: 'unreadable', words: `${error.code}`}),
		};
	} finally {
		if (fd !== null) closeSync(fd);
	}
}

/**
 * Fewer blocks than bytes: pages that never reached the disk, or a file system that compresses. No verdict, but a look at
 * the structure does not see what is missing.
 */
function withHint(findings: Findings & Sum, {size, blocks}: Stats, level: Level): Findings & Sum {
	const sparse = size >= 65_536 && blocks * 512 < size - 4_096;
	if (!sparse || atLeast(level, 'crc')) return findings;
	return {...findings, notes: [...findings.notes, 'takes less room on the disk than its size: only crc tells']};
}

const identityOf = ({size, mtimeMs, ino}: Stats): Identity => ({bytes: size, mtimeMs, inode: ino});

const found = (verdict: Verdict, notes: readonly string[] = [], tokens: number | null = null): Findings => ({
	verdict,
	tokens,
	ids: null,
	normChecked: false,
	notes,
});

/** The same on bytes. At `stat` the structure is read: a size alone is judged by SizeRules. */
export function checkSource(source: Source, name: string, options: CheckOptions): Findings & Sum {
	try {
		return judge(source, openContainer(source, name), sampleIndex(name) !== null, options);
	} catch (error) {
		if (error instanceof UnsupportedFile) return found({verdict: 'unsupported', reason: error.kind});
		if (!(error instanceof DamagedFile)) throw error;
		return found(suspect(error.damage, error.message));
	}
}

function judge(source: Source, container: Container, mustBeSample: boolean, options: CheckOptions): Findings & Sum {
	const {notes} = container;
	const sample = sampleShape(container, options.hidden);
	if (sample && 'verdict' in sample) return found(sample, notes);
	const is = (verdict: Verdict): Findings => found(verdict, notes, sample?.tokens ?? null);
	if (mustBeSample && !sample) return is(suspect('shape', 'holds no states with their ids'));
	if (mustBeSample && sample?.tokens === 0) return is(suspect('shape', 'a sample of 0 tokens'));
	if (container.format === 'torch' && container.tensors.length === 0)
		return is(suspect('not a tensor file', 'holds no tensors'));
	if (!atLeast(options.level, 'crc')) return is({verdict: 'done'});
	const values = options.level === 'values';
	const sums: RangeSum[] = [];
	for (const range of container.ranges) {
		const seen = scanRange(range, values ? dtypeOf(container, range) : null, element =>
			container.tensors.some(tensor => tensor.range === range && placeIn(tensor, element) !== null),
		);
		const trouble = scanned(container, sample, range, seen, values);
		if (trouble) return is(trouble);
		sums.push({range, crc: seen.crc});
	}
	const content = values && sample ? contentOf(sample, options.normWeight) : null;
	const verdict: Verdict = content?.trouble ?? wholeness(container);
	const sum = container.checksums ? null : wholeSum(source, sums);
	const checked = {...is(verdict), ids: content?.ids ?? null, normChecked: content?.normChecked ?? false};
	return sum === null ? checked : {...checked, sum};
}

type RangeSum = {readonly range: DataRange; readonly crc: number};

/** From the sums of its ranges and the bytes between them; null when a range is packed, and so was not summed as it lies there. */
function wholeSum(source: Source, sums: readonly RangeSum[]): number | null {
	const parts: {crc: number; bytes: number}[] = [];
	let cursor = 0;
	const readTo = (end: number): void => {
		parts.push({crc: crc32(source.read(cursor, end - cursor)), bytes: end - cursor});
	};
	const placed = sums.map(({range, crc}) => ({offset: range.offset, bytes: range.bytes, crc}));
	for (const {offset, bytes, crc} of placed.sort((one, other) => (one.offset ?? 0) - (other.offset ?? 0))) {
		if (offset === null) return null;
		readTo(offset);
		parts.push({crc, bytes});
		cursor = offset + bytes;
	}
	readTo(source.size);
	return joinedCrc(parts);
}

/** safetensors never has checksums: there is nothing that a file could lack, and zero pages were looked for. */
function wholeness({format, checksums}: Container): Verdict {
	if (checksums || format === 'safetensors') return {verdict: 'done'};
	return {verdict: 'unverifiable', reason: 'no checksums', words: 'all checksums are 0: none were written'};
}

/** The type of a range's elements, if all tensors that look into it agree. */
function dtypeOf({tensors}: Container, range: DataRange): Dtype | null {
	const types = new Set(tensors.filter(tensor => tensor.range === range).map(({dtype}) => dtype));
	return types.size === 1 ? ([...types][0] ?? null) : null;
}

function scanned(
	{checksums, tensors}: Container,
	sample: SampleShape | null,
	range: DataRange,
	seen: RangeScan,
	values: boolean,
): Suspect | null {
	const name = range.name.slice(range.name.indexOf('/') + 1);
	const layer = sample ? layerOf(sample, range) : null;
	if (range.crc !== null && seen.crc !== range.crc) return suspect('checksum', `checksum of ${name} is wrong`, layer);
	const at = (element: number | null) => (sample && element !== null ? layerAt(sample, range, element) : layer);
	if (seen.nonFinite !== null) {
		const held = tensors.find(tensor => tensor.range === range && placeIn(tensor, seen.nonFinite ?? 0) !== null);
		return suspect('not finite', `${held?.name || name} holds NaN or infinity`, at(seen.nonFinite));
	}
	// Only states: ids and masks are full of honest zeros.
	const state = tensors.find(tensor => tensor.range === range && /(^|[._])hidden_states?(\[|$)/.test(tensor.name));
	if (!state || range.bytes === 0) return null;
	if (values && seen.allZero) return suspect('zeros', `${state.name} holds nothing but zeros`, layer);
	if (seen.zeroPages === 0 || (checksums && !values)) return null;
	const first = Math.floor((seen.firstZeroPage ?? 0) / ITEM_BYTES[state.dtype]);
	return suspect('zero pages', `${state.name} has ${seen.zeroPages} zeroed pages`, at(first));
}

function contentOf(sample: SampleShape, weight: Float32Array | null) {
	const {tokens, groups} = sample;
	const ids = idsOf(sample);
	let trouble: Suspect | null = typeof ids === 'object' ? ids : null;
	let normChecked = false;
	for (const group of groups) {
		trouble ??= layersAlike(group, tokens);
		if (!weight) continue;
		const side = wrongSideOfNorm(group, tokens, weight);
		normChecked ||= side !== undefined;
		trouble ??= side ?? null;
	}
	return {trouble: trouble ?? emptyMask(sample), ids: typeof ids === 'number' ? ids : null, normChecked};
}
