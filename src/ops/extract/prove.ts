import {createHash} from 'node:crypto';
import {closeSync, openSync} from 'node:fs';
import type {ExtractionConfig} from '../target.ts';
import {openContainer} from '../tensor/container.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {scanRange} from '../tensor/scan.ts';
import {fileSource, type Source, windowed} from '../tensor/source.ts';
import {readTensor, readTorchFile, type TorchContents, tensorsOf} from '../tensor/torch-reader.ts';
import {endRecordPresent} from '../tensor/zip-reader.ts';
import {samplePath} from './inventory.ts';
import {sampleBytes} from './layouts.ts';
import {LAYER_NAMES} from './states.ts';

/** What speaks against a sample file. `foreign`: it is whole, and of another record. */
export type Objection = {readonly reason: string; readonly foreign: boolean};

type Expected = {readonly tokens: number; readonly idsDigest: Buffer};

/**
 * What speaks against a sample file, or null. `structure`: it came to its end, all metadata is as written, the shapes are
 * those of this record and so are the ids in it. `full`: also the checksum of every entry, which alone sees pages that
 * never reached the disk. Which torch wrote it makes no difference. Other trouble than damage throws.
 */
export function proveSample(
	extraction: ExtractionConfig,
	index: number,
	expected: Expected,
	tier: 'structure' | 'full',
): Objection | null {
	const {layout, hiddenSize} = extraction;
	const fd = openSync(samplePath(extraction, index), 'r');
	try {
		const source = windowed(fileSource(fd));
		if (!endRecordPresent(fd, source.size)) {
			const bytes = sampleBytes(layout, index, expected.tokens, hiddenSize);
			return {reason: `no end record, ${source.size} of about ${bytes} bytes`, foreign: false};
		}
		const file = readTorchFile(source);
		const other = otherRecord(source, file, expected, hiddenSize);
		if (other !== null) return {reason: other, foreign: true};
		const damage = tier === 'full' ? wrongChecksum(source) : null;
		return damage === null ? null : {reason: damage, foreign: false};
	} catch (error) {
		if (error instanceof DamagedFile) return {reason: error.message, foreign: false};
		throw error;
	} finally {
		closeSync(fd);
	}
}

function otherRecord(
	source: Source,
	file: TorchContents,
	{tokens, idsDigest}: Expected,
	hiddenSize: number,
): string | null {
	const tensors = new Map(tensorsOf(file.tree));
	const wanted = [
		['input_ids', `I64 ${tokens}`],
		...LAYER_NAMES.map((_, layer) => [`hidden_states[${layer}]`, `BF16 ${tokens}x${hiddenSize}`] as const),
	] as const;
	for (const [name, shape] of wanted) {
		const tensor = tensors.get(name);
		const found = tensor ? `${tensor.dtype} ${tensor.shape.join('x')}` : 'missing';
		if (found !== shape) return `${name} is ${found} where ${shape} belongs`;
	}
	if (tensors.has(`hidden_states[${LAYER_NAMES.length}]`)) return `it holds more than ${LAYER_NAMES.length} states`;
	const ids = tensors.get('input_ids');
	const digest =
		ids &&
		createHash('sha256')
			.update(readTensor(source, file, ids).data)
			.digest();
	return digest?.subarray(0, idsDigest.length).equals(idsDigest) ? null : 'its token ids are not those of this record';
}

/** Without checksums in the file nothing is said. */
function wrongChecksum(source: Source): string | null {
	for (const range of openContainer(source, 'sample.pt').ranges) {
		if (range.crc !== null && scanRange(range, null, () => false).crc !== range.crc)
			return `checksum of ${range.name.slice(range.name.indexOf('/') + 1)} is wrong`;
	}
	return null;
}
