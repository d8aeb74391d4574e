import {closeSync, fstatSync, openSync} from 'node:fs';
import type {ExtractionConfig} from '../target.ts';
import {endRecordPresent} from '../tensor/zip-reader.ts';
import {groupName, sampleBytes, sampleName} from './layouts.ts';

export type SampleState =
	| {readonly state: 'absent'}
	| {readonly state: 'done'; readonly bytes: number}
	| {readonly state: 'suspect'; readonly bytes: number; readonly reason: string};

export const samplePath = (extraction: ExtractionConfig, index: number): string =>
	`${extraction.output}/${groupName(index, extraction.groupSize)}/${sampleName(index)}`;

/**
 * What the file of a sample is worth. Done: it has an end record and exactly the size that its token count asks for; a
 * file that merely exists is not done. Other trouble than "no such file" throws.
 */
export function sampleState(extraction: ExtractionConfig, index: number, tokens: number): SampleState {
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
		const expected = sampleBytes(extraction.layout, index, tokens, extraction.hiddenSize);
		if (!endRecordPresent(fd, bytes))
			return {state: 'suspect', bytes, reason: `no end record, ${bytes} of ${expected} bytes`};
		if (bytes !== expected)
			return {state: 'suspect', bytes, reason: `${bytes} bytes where ${tokens} tokens need ${expected}`};
		return {state: 'done', bytes};
	} finally {
		closeSync(fd);
	}
}

/** Indices that count as done, given the token count of every sample. */
export function doneIndices(extraction: ExtractionConfig, tokens: readonly number[]): Set<number> {
	const done = new Set<number>();
	for (const [index, count] of tokens.entries()) {
		if (sampleState(extraction, index, Math.min(count, extraction.maxTokens)).state === 'done') done.add(index);
	}
	return done;
}
