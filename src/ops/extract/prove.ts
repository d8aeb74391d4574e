import {createHash} from 'node:crypto';
import {closeSync, openSync} from 'node:fs';
import {type Container, openContainer} from '../tensor/container.ts';
import {DamagedFile} from '../tensor/damage.ts';
import {ITEM_BYTES} from '../tensor/dtype.ts';
import {scanRange} from '../tensor/scan.ts';
import {fileSource, windowed} from '../tensor/source.ts';
import {inRowOrder} from '../tensor/torch-reader.ts';
import {endRecordPresent} from '../tensor/zip-reader.ts';
import {leavesOf, tensorOf} from './forms.ts';
import {samplePath} from './inventory.ts';
import {type Extraction, layoutOf} from './layouts.ts';
import {sampleBytes} from './sample-file.ts';

/** What speaks against a sample file. `foreign`: it is whole, and of another record. */
export type Objection = {readonly reason: string; readonly foreign: boolean};

type Expected = {readonly tokens: number; readonly idsDigest: Buffer};

/**
 * What speaks against a sample file, or null. `structure`: it came to its end, all metadata is as written, the shapes are
 * those of this record and so are the ids in it. `full`: also the checksum of every entry, which alone sees pages that
 * never reached the disk; in safetensors, which has none, pages of zeros. Which program wrote it makes no difference. Other
 * trouble than damage throws.
 */
export function proveSample(
	extraction: Extraction,
	index: number,
	expected: Expected,
	tier: 'structure' | 'full',
): Objection | null {
	const path = samplePath(extraction, index);
	const fd = openSync(path, 'r');
	try {
		const source = windowed(fileSource(fd));
		if (layoutOf(extraction).form.container === 'torch' && !endRecordPresent(fd, source.size)) {
			const bytes = sampleBytes(extraction, index, expected.tokens);
			return {reason: `no end record, ${source.size} of about ${bytes} bytes`, foreign: false};
		}
		const file = openContainer(source, path);
		const other = otherRecord(extraction, file, expected);
		if (other !== null) return {reason: other, foreign: true};
		const damage = tier === 'full' ? wrongBytes(file) : null;
		return damage === null ? null : {reason: damage, foreign: false};
	} catch (error) {
		if (error instanceof DamagedFile) return {reason: error.message, foreign: false};
		throw error;
	} finally {
		closeSync(fd);
	}
}

function otherRecord(extraction: Extraction, file: Container, {tokens, idsDigest}: Expected): string | null {
	const {form} = layoutOf(extraction);
	const tensors = new Map(file.tensors.map(each => [each.name, each]));
	for (const {name, part} of leavesOf(form)) {
		if (part.kind === 'mask') continue;
		const wanted = tensorOf(part, tokens, extraction.hiddenSize);
		const found = tensors.get(name);
		const words = found ? `${found.dtype} ${found.shape.join('x')}` : 'missing';
		const right = `${wanted.dtype} ${wanted.shape.join('x')}`;
		if (words !== right) return `${name} is ${words} where ${right} belongs`;
	}
	const known = new Set(leavesOf(form).map(({name}) => name));
	const more = file.tensors.find(({name}) => !known.has(name) && /hidden_state/.test(name));
	if (more) return `it holds ${more.name}, which is none of its layout`;
	return digestOfIds(extraction, file)?.subarray(0, idsDigest.length).equals(idsDigest)
		? null
		: 'its token ids are not those of this record';
}

/** SHA-256 of the ids as int64, whatever they are stored as. */
function digestOfIds(extraction: Extraction, {tensors}: Container): Buffer | null {
	const leaf = leavesOf(layoutOf(extraction).form).find(({part}) => part.kind === 'ids');
	const ids = tensors.find(({name}) => name === leaf?.name);
	if (!ids) return null;
	const {range, dtype, offset, shape, stride} = ids;
	const data = inRowOrder(range.open().read(0, range.bytes), ITEM_BYTES[dtype], offset, shape, stride);
	if (dtype !== 'I32') return createHash('sha256').update(data).digest();
	const wide = Buffer.alloc(data.length * 2);
	for (let at = 0; at < data.length; at += 4) wide.writeBigInt64LE(BigInt(data.readInt32LE(at)), at * 2);
	return createHash('sha256').update(wide).digest();
}

function wrongBytes({ranges, checksums, tensors}: Container): string | null {
	for (const range of ranges) {
		const name = range.name.slice(range.name.indexOf('/') + 1);
		const held = tensors.find(tensor => tensor.range === range);
		if (range.crc === null && held?.dtype !== 'BF16') continue;
		const {crc, zeroPages} = scanRange(range, null, () => false);
		if (range.crc !== null && crc !== range.crc) return `checksum of ${name} is wrong`;
		if (!checksums && zeroPages > 0) return `${name} has ${zeroPages} zeroed pages`;
	}
	return null;
}
