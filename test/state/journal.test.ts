import {appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, expect, test} from 'vitest';
import {journalDays, openJournal, readJournal} from '../../src/state/journal.ts';

const folders: string[] = [];
afterEach(() => {
	for (const folder of folders.splice(0)) rmSync(folder, {recursive: true});
});
const folder = () => {
	const made = mkdtempSync(join(tmpdir(), 'relight-journal-'));
	folders.push(made);
	return made;
};
const DAY = Date.parse('2026-03-02T23:59:59Z');

test('an intent is on disk when writing resolves, redacted, one line each, a file a day', async () => {
	const directory = folder();
	const journal = await openJournal(directory, 'ct/129', 'ops1', () => DAY);
	await journal.write({at: DAY, kind: 'intent', level: 'info', words: 'start', command: 'env HF_TOKEN=hf_x python'});
	const [first] = readdirSync(directory);
	expect(first).toBe('ct_129-2026-03-02.ndjson');
	expect(readFileSync(join(directory, first ?? ''), 'utf8')).toBe(
		'{"at":"2026-03-02T23:59:59.000Z","kind":"intent","level":"info","words":"start","command":"env HF_TOKEN=*** python","operator":"ops1"}\n',
	);
	journal.note({at: DAY + 2_000, kind: 'outcome', level: 'ok', words: 'done', command: null});
	await journal.close();
	expect(readdirSync(directory).sort()).toEqual(['ct_129-2026-03-02.ndjson', 'ct_129-2026-03-03.ndjson']);
});

test('what cannot be written down is an error, so that nothing is done', async () => {
	const directory = folder();
	const journal = await openJournal(directory, 'x', 'ops1', () => DAY);
	rmSync(directory, {recursive: true});
	folders.length = 0;
	await expect(journal.write({at: DAY, kind: 'intent', level: 'info', words: 'x', command: null})).rejects.toThrow(
		/ENOENT/,
	);
	expect(journal.state).toBe('failing');
});

test('what was written is read again by day, torn lines left out', async () => {
	const directory = folder();
	const journal = await openJournal(directory, 'ct129', 'ops1', () => DAY);
	const entry = {at: DAY, kind: 'intent' as const, level: 'info' as const, words: 'start --api-key abc', command: null};
	await journal.write(entry);
	journal.note({...entry, at: DAY + 2_000, words: 'next day'});
	await journal.close();
	appendFileSync(join(directory, 'ct129-2026-03-02.ndjson'), '[1]\n{"at":"never","words":""}\n{"at":"2026-03-0');
	writeFileSync(join(directory, 'ct129-b-2026-03-02.ndjson'), '');
	expect(await journalDays(directory, 'ct129')).toEqual(['2026-03-02', '2026-03-03']);
	expect(await readJournal(directory, 'ct129', '2026-03-02')).toEqual([
		{...entry, words: 'start --api-key ***', operator: 'ops1'},
	]);
	expect(await journalDays(join(directory, 'none'), 'ct129')).toEqual([]);
});
