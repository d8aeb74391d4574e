import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {builtIn} from '../bin/built-extractor.ts';

const FILES = join(import.meta.dirname, '../bin/standalone-files.js');
const sum = (text: string) => createHash('sha256').update(text).digest('hex');

let folder = '';
const dist = (name = '') => join(folder, 'dist', name);
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'relight-dist-'));
	mkdirSync(dist());
	writeFileSync(dist('extractor.mjs'), 'now');
	writeFileSync(dist('chunk-OLD.js'), '');
	for (const [architecture, of] of [
		['x64', 'now'],
		['arm64', 'before'],
	] as const) {
		writeFileSync(dist(`relight-extractor-linux-${architecture}`), architecture);
		const note = {bytes: architecture.length, sha256: sum(architecture), of: sum(of)};
		writeFileSync(dist(`relight-extractor-linux-${architecture}.json`), JSON.stringify(note));
	}
});
afterEach(() => rmSync(folder, {recursive: true}));

const inFolder = (code: string) =>
	spawnSync(process.execPath, ['--input-type=module', '-e', `const files = await import('${FILES}'); ${code}`], {
		cwd: folder,
		encoding: 'utf8',
	});

test('a build leaves the executables, and drops the one that was made of another extractor', () => {
	mkdirSync(dist('relight-extractor-linux-x64.building-a1b2'));
	expect(inFolder('files.clearDist()')).toMatchObject({status: 0, stderr: ''});
	const names = ['arm64', 'arm64.json', 'x64', 'x64.json'].map(each => `relight-extractor-linux-${each}`);
	expect(readdirSync(dist()).sort()).toEqual(names);
	writeFileSync(dist('extractor.mjs'), 'now');
	expect(inFolder(`files.dropStale('dist/extractor.mjs')`)).toMatchObject({
		status: 0,
		stderr:
			'relight-extractor-linux-arm64 was made of another extractor and is gone: npm run build:standalone makes it anew\n',
	});
	expect(readdirSync(dist()).sort()).toEqual(['extractor.mjs', ...names.slice(2)]);
	rmSync(dist(), {recursive: true});
	expect(inFolder('files.clearDist()').status).toBe(0);
});

test('what was built is found by the notes; without its file a note says nothing, and without a bundle nothing does', () => {
	rmSync(dist('relight-extractor-linux-arm64'));
	const x64 = {architecture: 'x64', source: dist('relight-extractor-linux-x64'), bytes: 3, sha256: sum('x64')};
	expect(builtIn(dist())).toEqual({
		here: `${process.platform}-${process.arch}`,
		bundle: dist('extractor.mjs'),
		executables: [x64],
	});
	rmSync(dist('extractor.mjs'));
	expect(builtIn(dist())).toBeNull();
});
