import {spawn} from 'node:child_process';
import {mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {hostname, tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {bundle} from '../drill/support/part-program.ts';

/** Takes one lock after the other, each at an agreed instant, and never gives one back. */
const CONTENDER = `
import {takeLock, thisWriter} from './src/ops/extract/lock.ts';
const [directory, from, rounds] = process.argv.slice(2);
const writer = thisWriter('/proc');
let taken = '';
for (let round = 0; round < Number(rounds); round++) {
	while (Date.now() < Number(from) + round * 12) {}
	taken += takeLock(directory + '/' + round + '/lock', writer, '/proc', true).taken ? round + ' ' : '';
}
console.log(taken);
setTimeout(() => {}, 1500);
`;
const ROUNDS = 60;

let program: Awaited<ReturnType<typeof bundle>>;
const directory = mkdtempSync(join(tmpdir(), 'relight-lock-race-'));
beforeAll(async () => {
	program = await bundle(CONTENDER);
});
afterAll(() => {
	program.remove();
	rmSync(directory, {recursive: true});
});

test('of several that break the same stale lock exactly one gets it, and nothing else is left', async () => {
	const gone = {host: hostname(), bootId: 'another boot', pid: 1, startTicks: 1, since: 0};
	for (let round = 0; round < ROUNDS; round++) {
		mkdirSync(`${directory}/${round}`);
		writeFileSync(`${directory}/${round}/lock`, JSON.stringify(gone));
	}
	const from = String(Date.now() + 700);
	const outputs = await Promise.all(
		Array.from({length: 3}, () => {
			const child = spawn(process.execPath, [program.file, directory, from, String(ROUNDS)]);
			return new Promise<string>(resolve => {
				let text = '';
				child.stdout.on('data', piece => {
					text += piece;
				});
				child.on('close', () => resolve(text));
			});
		}),
	);
	const winners = outputs.flatMap(text => text.trim().split(' ').filter(Boolean).map(Number)).sort((a, b) => a - b);
	expect(winners).toEqual(Array.from({length: ROUNDS}, (_, round) => round));
	const left = Array.from({length: ROUNDS}, (_, round) => readdirSync(`${directory}/${round}`));
	expect(left).toEqual(left.map(() => ['lock']));
}, 20_000);
