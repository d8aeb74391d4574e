import {describe, expect, it} from 'vitest';
import {flagValue, guardedLine, protectionsOf, unknownFlags} from '../../../src/ops/server/protections.ts';
import {sampleTarget} from '../../ui/support/sample-state.ts';

const INCIDENT = ['--trust-remote-code', '--tp-size', '8', '--disable-cuda-graph', '--disable-radix-cache'];
const found = (version: string | null, flags: readonly string[] | null = null) => ({version, flags});
const names = (version: string | null) =>
	protectionsOf(sampleTarget, found(version)).map(({words: [flag = '']}) => flag.replace(/^--/, ''));

describe('what whole states need', () => {
	it('goes by the version; an unknown one is taken for the newest', () => {
		const always = ['chunked-prefill-size', 'disable-radix-cache', 'disable-overlap-schedule', 'disable-cuda-graph'];
		const fusion = 'enforce-disable-flashinfer-allreduce-fusion';
		expect(names('0.5.9')).toEqual(always);
		expect(names('0.5.12')).toEqual([...always, 'disable-piecewise-cuda-graph', fusion]);
		expect(names('0.5.14')).toEqual([...always, fusion]);
		expect(names(null)).toEqual([...always, fusion]);
		const {extraction} = sampleTarget;
		const long = {extraction: extraction && {...extraction, maxTokens: 20_000}};
		expect(protectionsOf(long, found('0.5.9'))[1]?.words).toEqual(['--max-prefill-tokens', '20000']);
	});

	it('is added to the line with the reason, and overrules nothing that is set', () => {
		expect(guardedLine(INCIDENT, sampleTarget, found('0.5.9'))).toEqual({
			args: [...INCIDENT, '--chunked-prefill-size', '-1', '--disable-overlap-schedule'],
			changes: [
				'+ --chunked-prefill-size -1: a chunk has the rows of its part alone',
				'+ --disable-overlap-schedule: passes then end in the order of their requests',
			],
		});
		const set = [...INCIDENT, '--chunked-prefill-size=4096', '--disable-overlap-schedule'];
		expect(guardedLine(set, sampleTarget, found('0.5.9'))).toEqual({
			args: set,
			changes: ['--chunked-prefill-size 4096 stays as it is set, though a chunk has the rows of its part alone'],
		});
	});

	it('adds nothing that this SGLang does not have, and puts the new name for one that it no longer has', () => {
		const flags = ['--model-path', '--tp-size', '--trust-remote-code', '--disable-radix-cache'];
		const graphs = ['--cuda-graph-backend-decode', '--cuda-graph-backend-prefill'];
		const line = guardedLine(INCIDENT, sampleTarget, found('0.6.0', [...flags, ...graphs]));
		expect(line.args).toEqual([
			...['--trust-remote-code', '--tp-size', '8', '--cuda-graph-backend-decode', 'disabled'],
			...['--cuda-graph-backend-prefill', 'disabled', '--disable-radix-cache'],
		]);
		expect(line.changes[0]).toContain('--disable-cuda-graph -> --cuda-graph-backend-decode disabled');
	});

	it('knows which flags the launch would end over, where the flags are known', () => {
		const flags = ['--model-path', '--tp-size', '--trust-remote-code'];
		expect(unknownFlags(['--trust-remote', '--tp-size', '8', '--nonsense=1'], found('0.5.9', flags))).toEqual([
			'--nonsense',
		]);
		expect(unknownFlags(['--nonsense'], found('0.5.9'))).toEqual([]);
		expect(unknownFlags(['--nonsense'], null)).toEqual([]);
	});

	it('reads values in both spellings', () => {
		expect(flagValue(['--a', '1', '--b', '--c=2'], '--a')).toBe('1');
		expect(flagValue(['--a', '1', '--b', '--c=2'], '--b')).toBe('');
		expect(flagValue(['--a', '1', '--b', '--c=2'], '--c')).toBe('2');
		expect(flagValue([], '--a')).toBeNull();
	});
});
