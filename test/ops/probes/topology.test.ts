import {describe, expect, it} from 'vitest';
import {topology} from '../../../src/ops/probes/topology.ts';
import {contextOf, fixture, look, makeTree, pathWith} from './support.ts';

const lookWith = async (program: string | null, stuckPids: readonly number[] = []) => {
	const tree = makeTree(program === null ? {} : {'bin/nvidia-smi': `#!/bin/sh\n${program}\n`});
	try {
		const path = program === null ? '/usr/bin:/bin' : pathWith(tree.root);
		return await look(topology, contextOf({hints: {stuckPids}}), {path});
	} finally {
		tree.remove();
	}
};

describe('how the cards are linked', () => {
	it('is asked of the tool as a person would ask it', async () => {
		const text = fixture('nvidia-smi/topo-mixed-driver-470.txt');
		const facts = await lookWith(`[ "$*" = 'topo -m' ] && cat <<'TEXT'\n${text}TEXT`);
		expect([facts.cards, facts.links[0], facts.links.length]).toEqual([4, {one: 0, other: 1, word: 'NV4'}, 6]);
	});

	it.each([
		['no tool', null, 'command not found'],
		[
			'a driver that is gone',
			'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; exit 9',
			'the driver is not loaded',
		],
		['a tool that ends without a word', 'exit 0', 'nvidia-smi topo'],
		[
			'a tool that knows no topology',
			'echo "Topology information is not supported"; exit 3',
			'Topology information is not supported',
		],
	])('is not known with %s', async (_, program, words) => {
		await expect(lookWith(program)).rejects.toThrow(words);
	});

	it('is not waited for longer than 5 s', async () => {
		const began = Date.now();
		await expect(lookWith('exec sleep 30')).rejects.toThrow('no answer in 5 s');
		expect(Date.now() - began).toBeLessThan(8_000);
	});
});
