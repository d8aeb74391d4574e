import {createHash} from 'node:crypto';
import {appendFileSync, symlinkSync, truncateSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
import {afterEach, describe, expect, it} from 'vitest';
import {manifestPath} from '../../../src/ops/extract/manifest-path.ts';
import {type ContentsFacts, contents} from '../../../src/ops/probes/contents.ts';
import type {ExtractionConfig, ServerConfig} from '../../../src/ops/target.ts';
import {answerOf, contextOf, look, makeTree, pathWith} from './support.ts';

const trees: ReturnType<typeof makeTree>[] = [];
afterEach(() => {
	for (const tree of trees.splice(0)) tree.remove();
});

function treeOf(files: Readonly<Record<string, string | Buffer>>): string {
	const tree = makeTree(files);
	trees.push(tree);
	return tree.root;
}

/** A shard with these tensors of 4 bytes each, its header in another order, and written by more than one writer of JSON. */
function shard(...names: string[]): Buffer {
	const tensors = names.map((name, at) => [name, {dtype: 'I32', shape: [1], data_offsets: [at * 4, at * 4 + 4]}]);
	const text = JSON.stringify(Object.fromEntries([['__metadata__', {}], ...tensors.reverse()]));
	const header = Buffer.from(names.length > 1 ? text.replaceAll(':', ': ').replaceAll(',', ', ') : text);
	const length = Buffer.alloc(8);
	length.writeBigUInt64LE(BigInt(header.length));
	return Buffer.concat([length, header, Buffer.alloc(4 * names.length)]);
}

const INDEX = JSON.stringify({
	weight_map: {a: 'm-1.safetensors', b: 'm-1.safetensors', c: 'm-2.safetensors', d: 'm-3.safetensors'},
});
const server = (root: string): ServerConfig => ({
	...{python: '/python3', tree: null, model: `${root}/the model`, port: 1, env: {}, args: []},
	...{log: '/l', name: 'n', phaseLimitMs: 1},
});
const weights = async (root: string, last: ContentsFacts | null = null, roots = {}) =>
	(await look(contents, contextOf({target: {server: server(root)}, last}), roots)).weights;

describe('the weights of a model', () => {
	it('are whole where each shard of the index is as long as its header says', async () => {
		const root = treeOf({
			'the model/m-1.safetensors': shard('a', 'b'),
			'the model/model.safetensors.index.json': INDEX,
			'blobs/2': shard('c'),
		});
		symlinkSync('../blobs/2', join(root, 'the model/m-2.safetensors'));
		symlinkSync('../blobs/3', join(root, 'the model/m-3.safetensors'));
		expect(await weights(root)).toEqual({
			seal: expect.stringMatching(/^\d+$/),
			shards: 2,
			shardsExpected: 3,
			missing: ['m-3.safetensors'],
			damaged: [],
			unread: [],
		});
	});

	it.each<[string, (path: string) => void, RegExp]>([
		[
			'cut at its end',
			path => truncateSync(path, shard('a', 'b').length - 1),
			/^it is \d+ bytes long, by its header \d+$/,
		],
		['with something behind it', path => appendFileSync(path, '\0'), /^it is \d+ bytes long, by its header \d+$/],
		['cut in its header', path => truncateSync(path, 40), /^its header is \d+ bytes long, the whole file 40$/],
		['cut in its length', path => truncateSync(path, 5), /^it does not begin with a header$/],
		['empty', path => truncateSync(path, 0), /^it does not begin with a header$/],
		['of zeros', path => writeFileSync(path, Buffer.alloc(200)), /^it does not begin with a header$/],
		['of another kind', path => writeFileSync(path, 'version https://git-lfs\n'), /^it does not begin with a header$/],
		['with fewer tensors', path => writeFileSync(path, shard('a')), /^its header names 1 tensors, the index 2$/],
	])('are not whole with a shard %s', async (_, ruin, why) => {
		const root = treeOf({
			'the model/m-1.safetensors': shard('a', 'b'),
			'the model/m-2.safetensors': shard('c'),
			'the model/m-3.safetensors': shard('d'),
			'the model/model.safetensors.index.json': INDEX,
		});
		ruin(join(root, 'the model/m-1.safetensors'));
		const found = await weights(root);
		expect(found).toMatchObject({missing: [], damaged: [{shard: 'm-1.safetensors', why: expect.stringMatching(why)}]});
	});

	it('are read once, and again when a file has changed', async () => {
		const root = treeOf({'the model/m-1.safetensors': shard('a')});
		const first = await weights(root);
		const noReading = {path: pathWith(treeOf({'bin/od': '#!/bin/sh\nexit 1\n'}))};
		const last = {weights: first, dataset: null};
		expect(await weights(root, last, noReading)).toBe(first);
		appendFileSync(join(root, 'the model/m-1.safetensors'), '\0');
		expect((await weights(root, last))?.damaged).toHaveLength(1);
	});

	it('are not known of a directory that is not there, or does not answer', async () => {
		expect(await weights('/nonexistent')).toBeNull();
		const path = pathWith(treeOf({'bin/find': '#!/bin/sh\nexec sleep 20\n'}));
		expect(await weights(treeOf({'the model/m-1.safetensors': shard('a')}), null, {path})).toBeNull();
	});

	it('are not damaged because a header was not read in time: that is asked again', async () => {
		const text = 'W 0 42\nS 21 m-1.safetensors\nS 21 m-2.safetensors\nH 9 4 1 m-1.safetensors\n';
		const context = contextOf<ContentsFacts>({target: {server: server('/')}});
		expect(contents.parse(answerOf({contents: text}), context).weights).toEqual({
			...{seal: '', shards: 2, shardsExpected: null, missing: [], damaged: [], unread: ['m-2.safetensors']},
		});
	});
});

const LINES = [1, 2, 3].map(id => JSON.stringify({input_ids: [id, 7], text: 'of "input_ids": and {"input_ids": 1}'}));
const DATASET = `[${LINES.join(', ')}]`;
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const dataset = async (
	root: string,
	change: Partial<ExtractionConfig>,
	last: ContentsFacts | null = null,
	roots = {},
) => {
	const extraction = {dataset: `${root}/data set.json`, output: `${root}/out`, records: 3, ...change};
	const target = {extraction: extraction as ExtractionConfig};
	return (await look(contents, contextOf({target, last}), roots)).dataset;
};

describe('the dataset of an extraction', () => {
	it.each<[string, string, string | Buffer]>([
		['one list', 'data.json', DATASET],
		['one list over many lines', 'data.json', JSON.stringify(JSON.parse(DATASET), null, 2)],
		['one object a line', 'data.jsonl', `${LINES.join('\n')}\n`],
		['packed', 'data.jsonl.gz', gzipSync(LINES.join('\n'))],
	])('is counted where only a number is expected: %s', async (_, name, text) => {
		const root = treeOf({[name]: text});
		const seen = await dataset(root, {dataset: `${root}/${name}`});
		expect(seen).toEqual({seal: expect.any(String), begunWith: null, sha256: null, records: 3});
	});

	it('is summed where a sum is known, by the configuration or by the run so far', async () => {
		const root = treeOf({'data set.json': DATASET});
		const sum = sha256(DATASET);
		expect(await dataset(root, {sha256: 'ab'})).toMatchObject({begunWith: null, sha256: sum, records: null});
		const begun = JSON.stringify({identity: {'dataset.sha256': 'cd'.repeat(32), 'dataset.records': 3}}, null, '\t');
		writeFileSync(manifestPath(`${root}/out`), begun);
		expect(await dataset(root, {records: null})).toMatchObject({begunWith: 'cd'.repeat(32), sha256: sum});
	});

	it('is not read where nothing is known to hold it against', async () => {
		const root = treeOf({'data set.json': DATASET});
		expect(await dataset(root, {records: null})).toMatchObject({sha256: null, records: null});
	});

	it('is read once, and again when it has changed or something else is asked of it', async () => {
		const root = treeOf({'data set.json': DATASET});
		const counted = {weights: null, dataset: await dataset(root, {})};
		const noReading = {path: pathWith(treeOf({'bin/tr': '#!/bin/sh\nexit 1\n'}))};
		expect(await dataset(root, {}, counted, noReading)).toEqual(counted.dataset);
		expect(await dataset(root, {sha256: 'ab'}, counted)).toMatchObject({sha256: sha256(DATASET), records: 3});
		writeFileSync(join(root, 'data set.json'), `[${LINES[0]}]`);
		expect((await dataset(root, {}, counted))?.records).toBe(1);
	});

	it('is not known where it is gone, does not answer, or was read only in part', async () => {
		expect(await dataset('/nonexistent', {})).toBeNull();
		const path = pathWith(treeOf({'bin/stat': '#!/bin/sh\nexec sleep 20\n'}));
		expect(await dataset(treeOf({'data set.json': DATASET}), {}, null, {path})).toBeNull();
		const context = contextOf<ContentsFacts>({});
		const parsed = (text: string) => contents.parse(answerOf({contents: `D 0 9-1-1\n${text}`}), context).dataset;
		expect(parsed('C 20000\nE 124\n')?.records).toBeNull();
		expect(parsed('H 124 \n')?.sha256).toBeNull();
	});
});
