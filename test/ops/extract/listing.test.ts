import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {leftTemporaries, sampleFiles} from '../../../src/ops/extract/inventory.ts';
import {namedSamples} from '../../../src/ops/extract/listing.ts';

let output: string;
beforeEach(() => {
	output = mkdtempSync(join(tmpdir(), 'relight-listing-'));
});
afterEach(() => rmSync(output, {recursive: true}));

function files(...paths: string[]): void {
	for (const path of paths) {
		mkdirSync(join(output, path, '..'), {recursive: true});
		writeFileSync(join(output, path), '');
	}
}

test('samples are named in the output itself and in its groups, and nowhere else', () => {
	files('hs_0.safetensors', 'rows_0-5/data_2.pt', 'rows_0-5/.data_3.pt.99.tmp', 'rows_5-10/data_6.ckpt');
	files('quarantine/data_4.pt', 'rows_5-10/deep/data_7.pt', 'rows_5-10/data_11.pt', 'rows_5-10/notes.txt');
	expect([...namedSamples(output, 8)]).toEqual([1, 0, 1, 0, 0, 0, 1, 0]);
	expect(sampleFiles(output).map(({index, path}) => [index, path.slice(output.length)])).toEqual([
		[0, '/hs_0.safetensors'],
		[2, '/rows_0-5/data_2.pt'],
		[11, '/rows_5-10/data_11.pt'],
		[6, '/rows_5-10/data_6.ckpt'],
	]);
	expect(leftTemporaries(output)).toEqual([`${output}/rows_0-5/.data_3.pt.99.tmp`]);
});

test('no output is an empty one', () => {
	expect([...namedSamples(join(output, 'none'), 2)]).toEqual([0, 0]);
	expect(sampleFiles(join(output, 'none'))).toEqual([]);
});
