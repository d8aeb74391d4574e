import {closeSync, fstatSync, openSync} from 'node:fs';
import {fileSource} from '../tensor/source.ts';
import {endRecordPresent} from '../tensor/zip-reader.ts';
import {sampleIndex} from '../verify/names.ts';
import {type Extraction, groupName, layoutOf, sampleStem} from './layouts.ts';
import {eachDirectory} from './listing.ts';
import {planSample} from './sample-file.ts';

export type SampleState =
	| {readonly state: 'absent'}
	| {readonly state: 'done'; readonly bytes: number}
	| {readonly state: 'suspect'; readonly bytes: number; readonly reason: string};

export function samplePath(extraction: Extraction, index: number): string {
	const layout = layoutOf(extraction);
	const directory = layout.flat ? '' : `/${groupName(index, extraction.groupSize)}`;
	return `${extraction.output}${directory}/${sampleStem(layout, index)}${layout.ending}`;
}

/**
 * What the file of a sample is worth. Done: it has an end record (safetensors: the header of its shapes) and exactly the
 * size that its token count asks for; a file that merely exists is not done. Other trouble than "no such file" throws.
 */
export function sampleState(extraction: Extraction, index: number, tokens: number): SampleState {
	const path = samplePath(extraction, index);
	let fd: number;
	try {
		fd = openSync(path, 'r');
	} catch (error) {
		if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {state: 'absent'};
		throw error;
	}
	try {
		const bytes = fstatSync(fd).size;
		const plan = planSample(extraction, index, tokens);
		if (plan.container === 'torch' && !endRecordPresent(fd, bytes))
			return {state: 'suspect', bytes, reason: `no end record, ${bytes} of ${plan.bytes} bytes`};
		if (bytes !== plan.bytes)
			return {state: 'suspect', bytes, reason: `${bytes} bytes where ${tokens} tokens need ${plan.bytes}`};
		if (plan.container === 'safetensors') {
			const {header} = plan.safetensors;
			if (!fileSource(fd, bytes).read(0, header.length).equals(header))
				return {state: 'suspect', bytes, reason: 'its header is not that of its shapes'};
		}
		return {state: 'done', bytes};
	} finally {
		closeSync(fd);
	}
}

/** Indices that count as done, given the token count of every sample. */
export function doneIndices(extraction: Extraction, tokens: readonly number[]): Set<number> {
	const done = new Set<number>();
	for (const [index, count] of tokens.entries()) {
		if (sampleState(extraction, index, Math.min(count, extraction.maxTokens)).state === 'done') done.add(index);
	}
	return done;
}

/** Temporaries that dead writers left where samples lie. Only to be asked under the lock. */
export function leftTemporaries(output: string): string[] {
	const found: string[] = [];
	eachDirectory(output, (names, directory) => {
		for (const name of names) if (/^\.(?:data|hs)_\d+\..*\.tmp$/.test(name)) found.push(`${directory}/${name}`);
	});
	return found;
}

/** Sample files of any layout by name, whatever they are worth. */
export function sampleFiles(output: string): {index: number; path: string}[] {
	const found: {index: number; path: string}[] = [];
	eachDirectory(output, (names, directory) => {
		for (const name of names) {
			const index = sampleIndex(name);
			if (index !== null) found.push({index, path: `${directory}/${name}`});
		}
	});
	return found;
}
