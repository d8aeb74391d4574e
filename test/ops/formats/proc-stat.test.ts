import {describe, expect, it} from 'vitest';
import {parseStat, splitStat} from '../../../src/ops/formats/proc-stat.ts';
import {ParseError} from '../../../src/ops/outcome.ts';
import {fixture} from '../probes/support.ts';

const read = (name: string) => splitStat(fixture(`proc-stat/${name}.txt`)).map(parseStat);

describe('a name with blanks does not shift the fields', () => {
	it('reads both', () => {
		expect([read('name-with-blanks-1'), read('name-with-blanks-2')]).toEqual([
			[
				{
					pid: 5768,
					name: 'Plex New Transc',
					state: 'S',
					parentPid: 1264,
					groupId: 1252,
					sessionId: 1252,
					cpuTicks: 9397,
					threads: 8,
					startTicks: 1430749,
					residentPages: 16704,
				},
			],
			[
				{
					pid: 4677,
					name: 'tmux: client',
					state: 'S',
					parentPid: 4676,
					groupId: 4677,
					sessionId: 4677,
					cpuTicks: 0,
					threads: 1,
					startTicks: 20017,
					residentPages: 746,
				},
			],
		]);
	});
});

describe('a name with brackets does not forge a state', () => {
	it('reads up to the last bracket', () => {
		const pick = ({name, state, parentPid, startTicks}: ReturnType<typeof parseStat>) => ({
			name,
			state,
			parentPid,
			startTicks,
		});
		expect([...read('name-with-brackets-1'), ...read('name-with-brackets-2')].map(pick)).toEqual([
			{name: 'sleep (2) .sh', state: 'S', parentPid: 75750, startTicks: 18366278},
			{name: 'a) R 1 (b', state: 'S', parentPid: 10975, startTicks: 153411},
		]);
	});
});

describe('a record is not a line', () => {
	const line = (name: string) => fixture('proc-stat/pid-reused.txt').replace('cron', name);

	it('joins a name that holds newlines and forges no process', () => {
		const text = line('a\n1 (b) R 2') + line('x\n\n)\n') + line('plain');
		expect(
			splitStat(text)
				.map(parseStat)
				.map(({pid, name, state}) => [pid, name, state]),
		).toEqual([
			[1681, 'a\n1 (b) R 2', 'S'],
			[1681, 'x\n\n)\n', 'S'],
			[1681, 'plain', 'S'],
		]);
	});

	it('refuses text that never becomes a record', () => {
		expect(() => splitStat('12 (cut')).toThrow(ParseError);
		expect(() => splitStat('1 (x) S\n'.repeat(40))).toThrow(ParseError);
		expect(splitStat('')).toEqual([]);
	});
});
