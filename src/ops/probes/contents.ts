import {quote} from '../command.ts';
import {DEFINE_MARK, mark, readSections} from '../formats/sections.ts';
import {DEFINE_CAPTURE} from './capture.ts';
import {type DatasetFacts, defineDataset, parseDataset} from './dataset-sum.ts';
import type {Probe} from './probe.ts';
import {DEFINE_WEIGHTS, parseWeights, type WeightsFacts} from './weights.ts';

/** Whether the large files that a run rests on are whole. null: not configured, or they gave no answer. */
export type ContentsFacts = {readonly weights: WeightsFacts | null; readonly dataset: DatasetFacts | null};

const SECTIONS = ['contents'] as const;

/**
 * The one look that reads large files, and reads each but once: afterwards it only sees whether they have changed. In a
 * lane where little waits; both side by side into a pipe that is read for 8 s, so that a dead mount costs its own part.
 */
export const contents: Probe<ContentsFacts> = {
	id: 'contents',
	lane: 'command-lines',
	everyMs: 60_000,
	limitMs: 14_000,
	capBytes: 1_048_576,
	script: ({target: {server, extraction}, last}) => {
		const weights = server && `w ${quote(server.model)} ${quote(last?.weights?.seal ?? '')} &`;
		const asks = [weights, extraction && 'd &'].filter(ask => ask !== null);
		if (asks.length === 0) return null;
		return [
			DEFINE_MARK,
			DEFINE_CAPTURE,
			DEFINE_WEIGHTS,
			...(extraction ? [defineDataset(extraction, last?.dataset ?? null)] : []),
			`${mark('contents')}; { ${asks.join(' ')} } 2>/dev/null | timeout 8 cat; true`,
		].join('\n');
	},
	parse: ({stdout}, {last}) => {
		const lines = readSections('contents', stdout, SECTIONS).contents.split('\n');
		return {
			weights: parseWeights(lines, last?.weights ?? null),
			dataset: parseDataset(lines, last?.dataset ?? null),
		};
	},
};
