import {describe, expect, it} from 'vitest';
import {readDumps} from '../../../src/ops/probes/dump-entries.ts';
import {readRun} from '../../../src/ops/probes/extraction-run.ts';
import {fixture} from './support.ts';

describe('the run as it tells of itself', () => {
	const none = {progress: '', stat: 'boot\n', log: '', clockMs: 1_767_225_600_000, expected: 37_312};
	const progress = fixture('extraction/progress.json');
	const boot = 'aaaaaaaa-0000-0000-0000-000000000001\n';
	const stat = (state = 'S', ticks = 777) =>
		`${boot}4242 (relight) ${state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${ticks} 0 420 0 0 0 0 0 0\n`;

	it('reads its progress file', () => {
		expect(readRun({...none, progress, stat: stat()})).toEqual({
			source: 'progress',
			state: 'extracting',
			pid: 4242,
			startTicks: 777,
			alive: true,
			extracted: 60,
			skipped: 18_421,
			errors: 1,
			tokens: 141_000,
			samplesPerSecond: 1.12,
			tokensPerSecond: 2582,
			bytesPerSecond: 148_000_000,
			etaMs: {low: 15_000_000, high: 18_000_000},
			lastIndex: 18_480,
			updatedAt: 1_767_225_599_000,
			message: null,
		});
	});

	it.each([
		['another start', stat('S', 778)],
		['a zombie', stat('Z')],
		['another boot', stat().replace('aaaaaaaa', 'bbbbbbbb')],
		['no such process', boot],
	])('is not alive: %s', (_, text) => {
		expect(readRun({...none, progress, stat: text})?.alive).toBe(false);
	});

	it.each([
		'{"schema":"relight.progress/1"',
		'[]',
		'{"schema":"other/1"}',
		progress.replace('"extracting"', '"dancing"'),
		progress.replace('60,', '"60",'),
	])('refuses a foreign shape: %s', text => {
		expect(() => readRun({...none, progress: text})).toThrow('progress file: cannot read');
	});

	it('numbers that are left out are null', () => {
		const text = '{"schema":"relight.progress/1","state":"verifying","extracted":0,"errors":0}';
		expect(readRun({...none, progress: text})).toMatchObject({state: 'verifying', pid: null, alive: null, etaMs: null});
	});

	const log = `1767225590\n${fixture('extraction/script.log')}`;

	it('reads a foreign script without its token meter, skips never counted as work', () => {
		expect(readRun({...none, log})).toEqual({
			source: 'script log',
			state: 'extracting',
			pid: null,
			startTicks: null,
			alive: null,
			extracted: 60,
			skipped: 18_421,
			errors: 0,
			tokens: null,
			samplesPerSecond: 1.12,
			tokensPerSecond: null,
			bytesPerSecond: null,
			etaMs: {low: Math.round((18_831 / 1.12) * 1000), high: Math.round((18_831 / 0.91) * 1000)},
			lastIndex: 18_480,
			updatedAt: 1_767_225_590_000,
			message: null,
		});
	});

	it.each<[string, string, Partial<typeof none>, string]>([
		['skips alone', 'Skipping 15002 (already exists)\n', {}, 'starting'],
		['nothing for two minutes', fixture('extraction/script.log'), {clockMs: 1_767_225_711_000}, 'silent'],
		[
			'a traceback',
			`${fixture('extraction/script.log')}Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\n`,
			{},
			'failed',
		],
		['all there', fixture('extraction/script.log'), {expected: 18_481}, 'finished'],
	])('state of a script: %s', (_, text, parts, state) => {
		expect(readRun({...none, log: `1767225590\n${text}`, ...parts})?.state).toBe(state);
	});

	it('nothing told at all', () => {
		expect(readRun(none)).toBeNull();
	});
});

describe('dump directory', () => {
	it('sums the files of each request', () => {
		expect(readDumps('d 4096 10.5 req_a\nf 5 11.0 req_a/aux_0.bin\nf 7 11.0 req_a/x y\nf 3 12.25 req_b\n0\n')).toEqual([
			{name: 'req_a', modifiedAt: 10_500, bytes: 12},
			{name: 'req_b', modifiedAt: 12_250, bytes: 3},
		]);
		expect(readDumps('1\n')).toEqual([]);
		expect(readDumps('137\n')).toBeNull();
	});
});
