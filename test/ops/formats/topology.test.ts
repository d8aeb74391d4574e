import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {describe, expect, it} from 'vitest';
import {distanceOf, parseTopology} from '../../../src/ops/formats/topology.ts';
import {ParseError} from '../../../src/ops/outcome.ts';

const fixture = (name: string) =>
	readFileSync(join(import.meta.dirname, `../../fixtures/nvidia-smi/topo-${name}.txt`), 'utf8');
const counts = (name: string) => {
	const {cards, links} = parseTopology(fixture(name));
	const words = new Map<string, number>();
	for (const {word} of links) words.set(word, (words.get(word) ?? 0) + 1);
	return {cards, words: Object.fromEntries(words)};
};

describe('the matrix of cards', () => {
	it('gives every pair once, without adapters, affinities and legend', () => {
		expect(parseTopology(fixture('mixed-driver-470'))).toEqual({
			cards: 4,
			links: [
				{one: 0, other: 1, word: 'NV4'},
				{one: 0, other: 2, word: 'SYS'},
				{one: 0, other: 3, word: 'SYS'},
				{one: 1, other: 2, word: 'SYS'},
				{one: 1, other: 3, word: 'SYS'},
				{one: 2, other: 3, word: 'NV4'},
			],
		});
		expect(counts('nvlink')).toEqual({cards: 8, words: {NV18: 28}});
		expect(counts('pcie')).toEqual({cards: 8, words: {NODE: 12, SYS: 16}});
		expect(parseTopology(fixture('one-card'))).toEqual({cards: 1, links: []});
	});

	it.each([
		['no output', ''],
		['words', 'Failed to initialize NVML: Unknown Error\n'],
		['a header alone', '\tGPU0\tGPU1\tCPU Affinity\n'],
		['a row cut short', '\tGPU0\tGPU1\nGPU0\t X \n'],
	])('is no matrix out of %s', (_, text) => expect(() => parseTopology(text)).toThrow(ParseError));
});

it('a link is as far as its word says, and one that nobody knows is the farthest', () => {
	expect(['NV18', 'NV4', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS', 'NVX', 'N/A'].map(distanceOf)).toEqual([
		0, 0, 1, 2, 3, 4, 5, 6, 6,
	]);
});
