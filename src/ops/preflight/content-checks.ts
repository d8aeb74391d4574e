import {type Facts, fresh} from '../facts.ts';
import type {DatasetFacts} from '../probes/dataset-sum.ts';
import type {WeightsFacts} from '../probes/weights.ts';
import type {ExtractionConfig} from '../target.ts';
import {type Finding, fail, failWhen, type PreflightCheck, unseen, unseenAside, warn} from './check.ts';

const NOT_READ = 'it has not been read yet, or the last look failed';
const MOST_NAMED = 3;

/** Whether what is large is whole: the weights that the server loads, the dataset that the extractor reads. */
export const CONTENT_CHECKS: readonly PreflightCheck[] = [
	{
		id: 'model',
		says: 'the model is complete, by its index and the headers of its shards',
		blocks: 'launch',
		mends: null,
		finds({facts, target: {server}}) {
			if (!server) return null;
			const read = fresh(facts.contents);
			if (!read) return unseen(`${server.model}: ${NOT_READ}`);
			if (!read.weights) return unseen(`${server.model} gave no listing of its shards`);
			return findingsOf(server.model, read.weights);
		},
	},
	{
		id: 'dataset',
		says: 'the dataset is there, and the one that was meant',
		blocks: 'extraction',
		mends: null,
		finds({facts, target: {extraction}}) {
			if (!extraction) return null;
			const file = fresh(facts.files)?.files.find(each => each.path === extraction.dataset);
			if (!file) return unseen('the files it needs have not been seen yet, or the last look failed');
			if (file.state === 'no answer') return unseen(`${file.path} does not answer`);
			if (file.state !== 'present') return [fail(`${file.path} is ${file.state === 'gone' ? 'gone' : 'another file'}`)];
			return sumFindings(extraction, facts);
		},
	},
];

function findingsOf(model: string, {shards, shardsExpected, missing, damaged, unread}: WeightsFacts): Finding[] {
	if (shards === 0) return [fail(`${model} holds no shard (*.safetensors)`)];
	const all = shardsExpected ?? shards;
	return [
		...failWhen(missing.length > 0, `the model lacks ${missing.length} shard(s): ${named(missing)}`),
		...failWhen(
			damaged.length > 0,
			`${damaged.length} of ${all} shards are not whole: ${named(damaged.map(({shard, why}) => `${shard}: ${why}`))}`,
		),
		...(shardsExpected === null ? [warn(`${model} has no readable index of its shards`)] : []),
		...(unread.length > 0 ? unseenAside(`the headers of ${unread.length} of ${all} shards were not read in time`) : []),
	];
}

const named = (words: readonly string[]): string =>
	`${words.slice(0, MOST_NAMED).join(', ')}${words.length > MOST_NAMED ? ', …' : ''}`;

function sumFindings({dataset, records, sha256}: ExtractionConfig, facts: Facts): readonly Finding[] {
	const read = fresh(facts.contents);
	if (!read) return unseen(`${dataset}: ${NOT_READ}`);
	if (!read.dataset) return unseen(`${dataset} does not answer`);
	const expected = sha256 ?? read.dataset.begunWith;
	if (expected !== null)
		return heldAgainst(dataset, read.dataset, expected, sha256 ? 'expected' : 'the run began with');
	if (records === null) return [warn('how many records it must have is not configured (extraction.expect.records)')];
	if (read.dataset.records === null) return unseenAside(`the records of ${dataset} could not be counted`);
	return failWhen(
		read.dataset.records !== records,
		`${dataset} has ${read.dataset.records} records, expected ${records}`,
	);
}

function heldAgainst(dataset: string, {sha256}: DatasetFacts, expected: string, whose: string): readonly Finding[] {
	if (sha256 === null) return unseenAside(`the sum of ${dataset} could not be read`);
	return failWhen(sha256 !== expected, `${dataset} has sha256 ${short(sha256)}, ${whose} ${short(expected)}`);
}

const short = (sha256: string): string => `${sha256.slice(0, 12)}…`;
