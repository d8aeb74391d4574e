import {existsSync, readFileSync} from 'node:fs';
import {describe, expect, test} from 'vitest';
import {bufferSource} from '../../../src/ops/tensor/source.ts';
import {checkSource} from '../../../src/ops/verify/check-file.ts';
import type {Level, Verdict} from '../../../src/ops/verify/verdict.ts';

const FIXTURES = 'test/fixtures/pt';

type Fixture = {readonly file: string; readonly verdict: string; readonly detect: string};

const {fixtures}: {fixtures: readonly Fixture[]} = JSON.parse(readFileSync(`${FIXTURES}/MANIFEST.json`, 'utf8'));

const look = (file: string, level: Level) =>
	checkSource(bufferSource(readFileSync(`${FIXTURES}/${file}`)), file, {level, hidden: null, normWeight: null});

/** What a manifest's verdict means once everything is looked at. */
function expected({file, verdict}: Fixture): Verdict['verdict'] {
	if (file.endsWith('.gz')) return 'unsupported';
	switch (verdict) {
		case 'good':
		case 'good-unusual':
			return 'done';
		case 'good-legacy':
			return 'unsupported';
		case 'good-unverifiable':
			return 'unverifiable';
		default:
			return 'suspect';
	}
}

/** The cheapest level that can find it; heuristics need the data, too. */
const cheapest: Record<string, Level> = {
	structural: 'structure',
	schema: 'structure',
	crc: 'crc',
	'zero-page-heuristic': 'crc',
	content: 'values',
};

describe('every fixture of the manifest', () => {
	test('is here', () => {
		expect(fixtures.length).toBe(88);
		expect(fixtures.filter(({file}) => !existsSync(`${FIXTURES}/${file}`))).toEqual([]);
	});

	test.each(fixtures)('$file is $verdict', fixture => {
		expect(look(fixture.file, 'values').verdict.verdict).toBe(expected(fixture));
	});

	const found = fixtures.filter(each => expected(each) === 'suspect');
	test.each(found)('$file is found at the level that the manifest names: $detect', ({file, detect}) => {
		const level = cheapest[detect] ?? 'stat';
		expect(look(file, level).verdict.verdict).toBe('suspect');
		if (level !== 'structure') expect(look(file, 'structure').verdict.verdict).toBe('done');
		if (level === 'values') expect(look(file, 'crc').verdict.verdict).toBe('done');
	});

	const unusual = fixtures.filter(({verdict, file}) => verdict === 'good-unusual' && /\.(pt|ckpt)$/.test(file));
	test.each(unusual)('$file is done, with a note of what is unusual', ({file}) => {
		expect(look(file, 'values').notes).not.toEqual([]);
	});

	test('none of them is run', () => {
		expect(existsSync('PT_FIXTURE_WAS_EXECUTED')).toBe(false);
		expect(Object.prototype).not.toHaveProperty('polluted');
	});
});

describe('words and layers', () => {
	test.each([
		['bad-hole-page-in-tensor.ckpt', {reason: 'checksum', words: 'checksum of data/3 is wrong', layer: null}],
		['sem-nan.ckpt', {reason: 'not finite', words: 'hidden_state holds NaN or infinity', layer: 3}],
		['sem-all-zero-hidden.ckpt', {reason: 'zeros', words: 'aux_hidden_state holds nothing but zeros', layer: null}],
		['sem-negative-id.ckpt', {reason: 'ids', words: 'token 3 of input_ids is no id', layer: null}],
		['sem-empty-loss-mask.ckpt', {reason: 'mask', words: 'loss_mask is all zero', layer: null}],
	])('%s', (file, rest) => {
		expect(look(file, 'values').verdict).toEqual({verdict: 'suspect', ...rest});
	});
});
