import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, describe, expect, it} from 'vitest';
import {noteStart, readLastStart, spell, splitStart, stallLimitMs} from '../../../src/ops/server/last-start.ts';

const LOG = join(import.meta.dirname, '../../fixtures/sglang/serving.log');
const TIMES = {arguments: 3_000, distributed: 5_000, loading: 120_000, memory: 550_000, http: 2_000};

describe('a start that came up', () => {
	let folder = '';
	let path = '';
	const note = (log: string) => {
		const env = {PATH: `${folder}:/usr/bin:/bin`};
		return execFileSync('/bin/sh', ['-c', noteStart({launchId: 'L-1', log}, path)], {encoding: 'utf8', env});
	};
	const cards = (script: string) => writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\n${script}\n`, {mode: 0o755});
	beforeEach(() => {
		folder = mkdtempSync(join(tmpdir(), 'relight-phases-'));
		path = join(folder, 'a launch.json.phases');
	});
	afterEach(() => rmSync(folder, {recursive: true}));

	it('leaves the lines that mark its phases, and they tell how long each took', () => {
		expect(note(LOG)).toBe('noted\n');
		const text = readFileSync(path, 'utf8');
		expect(text.split('\n').map(line => line.slice(0, 48))).toEqual([
			'phases L-1',
			'[2026-01-31 17:10:02 TP0] server_args=ServerArgs',
			'[2026-01-31 17:10:05 TP0] Init torch distributed',
			'[2026-01-31 17:10:09 TP0] Init torch distributed',
			'[2026-01-31 17:10:10 TP0] Load weight begin. ava',
			'[2026-01-31 17:12:10 TP0] Load weight end. type=',
			'[2026-01-31 17:12:12 TP0] KV Cache is allocated.',
			'[2026-01-31 17:12:13 TP0] Memory pool end. avail',
			'[2026-01-31 17:12:14 TP0] max_total_num_tokens=1',
			'[2026-01-31 17:21:20] INFO:     Uvicorn running ',
			'[2026-01-31 17:21:22] The server is fired up and',
			'',
			'',
		]);
		expect(readLastStart(text)).toEqual({phaseMs: TIMES, topology: null});
	});

	it('is noted with the links of its cards, where a tool tells them', () => {
		cards(`cat '${join(LOG, '../../nvidia-smi/topo-mixed-driver-470.txt')}'`);
		note(LOG);
		const start = readLastStart(readFileSync(path, 'utf8'));
		expect(start?.phaseMs).toEqual(TIMES);
		expect([start?.topology?.cards, start?.topology?.links.length]).toEqual([4, 6]);
		cards('echo no; exit 9');
		note(LOG);
		expect(readLastStart(readFileSync(path, 'utf8'))).toEqual({phaseMs: TIMES, topology: null});
	});

	it('whose log tells nothing, or is gone, leaves what the one before told', () => {
		note(LOG);
		const before = readFileSync(path, 'utf8');
		writeFileSync(join(folder, 'empty.log'), 'Traceback\n');
		for (const log of [join(folder, 'empty.log'), join(folder, 'gone.log')])
			expect(note(log)).toBe('not noted: no line of the log tells\n');
		expect([readFileSync(path, 'utf8'), existsSync(`${path}.tmp`)]).toEqual([before, false]);
	});

	it('is bounded, however much its log holds', () => {
		const line = `[2026-01-31 17:10:05 TP0] Init torch distributed begin. ${'x'.repeat(5_000)}\n`;
		writeFileSync(join(folder, 'long.log'), line.repeat(2_000));
		note(join(folder, 'long.log'));
		expect(readFileSync(path).length).toBeLessThan(65_536);
	});
});

describe('what lies beside the record', () => {
	const begin = '[2026-01-31 17:10:10] Load weight begin.';
	const end = '[2026-01-31 17:12:10] Load weight end.';

	it.each([
		['nothing', ''],
		['a head alone', 'phases L-1\n'],
		['lines without a head', `${begin}\n${end}\n`],
		['a start with one phase', `phases L-1\n${begin}\n`],
		['no stamps', 'phases L-1\nLoad weight begin.\nLoad weight end.\n'],
		['a clock that went back', `phases L-1\n${begin}\n${end.replace('17:12', '16:12')}\n`],
		['a day and more', `phases L-1\n${begin}\n${end.replace('01-31', '02-02')}\n`],
		['bytes of anything', `phases L-1\n\u0000\u001b[2J{"pid":1}\n[9999-99-99 99:99:99] Load weight begin.\n`],
	])('tells nothing when it is %s', (_, text) => expect(readLastStart(text)).toBeNull());

	it('loses only what does not fit', () => {
		expect(readLastStart(`phases L-1\nrubbish\n${begin}\n\u001b]0;x\u0007\n${end}\n`)).toEqual({
			phaseMs: {loading: 120_000},
			topology: null,
		});
	});

	it('is told from the record and the mark of proof before it', () => {
		expect(splitStart('{"a":1}\nL-1\nphases L-1\n[x')).toEqual({before: '{"a":1}\nL-1\n', start: 'phases L-1\n[x'});
		expect(splitStart('{"a":"phases x"}\n')).toEqual({before: '{"a":"phases x"}\n', start: ''});
	});
});

it('a phase may take twice what it took last time, and never less than is configured', () => {
	expect([stallLimitMs(60_000, undefined), stallLimitMs(60_000, 20_000), stallLimitMs(60_000, 130_000)]).toEqual([
		60_000, 60_000, 260_000,
	]);
	expect([spell(9_400), spell(130_000)]).toEqual(['9 s', '2 min 10 s']);
});
