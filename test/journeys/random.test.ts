import {spawn} from 'node:child_process';
import {join} from 'node:path';
import {expect, test} from 'vitest';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');

function drill(...words: string[]): Promise<{code: number | null; out: string; said: string}> {
	const child = spawn(process.execPath, [PROGRAM, 'drill', ...words, '--unattended', '--json'], {
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let [out, said] = ['', ''];
	child.stdout.on('data', piece => {
		out += piece;
	});
	child.stderr.on('data', piece => {
		said += piece;
	});
	return new Promise(resolve => child.on('close', code => resolve({code, out, said})));
}

/** A small share of what `npm run drills` runs: two that must be refused for another reason each, one that gets through. */
test.concurrent.each([
	[1, ['hook', 'vendor-link'], 'recovered', null],
	[3, ['corrupt-samples', 'patch-lost', 'vendor-link'], 'refused', /neither patch nor hook is active/],
	[5, ['corrupt-samples', 'wedged-driver'], 'refused', /cards not known: nvidia-smi/],
] as const)(
	'random drill %i ends as its faults ask for',
	async (seed, faults, outcome, because) => {
		const {code, out, said} = await drill('random', '--seed', String(seed));
		expect(code, said).toBe(0);
		const result = JSON.parse(out);
		expect(result).toMatchObject({
			schema: 'relight.drill/1',
			faults,
			outcome,
			objection: null,
			samples: {lost: 0, corrupt: 0},
			wrongKills: 0,
			outsidePlan: 0,
		});
		if (because === null) expect(result.because).toBe(null);
		else expect(result.because).toMatch(because);
		expect(said).toContain(`seed ${seed}: ${faults.join(', ')}`);
	},
	180_000,
);

test('the scenarios are listed, and one that does not exist is wrong use that names them', async () => {
	const {code, said} = await drill('no-such');
	expect({code, said}).toMatchObject({
		code: 64,
		said: expect.stringMatching(/there are incident, hook, .*full-and-frozen, random/),
	});
	const {out} = await drill('--list');
	expect(out).toMatch(/^hung-mount +refused +/m);
});
