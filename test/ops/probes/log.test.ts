import {appendFileSync, renameSync, truncateSync, writeFileSync} from 'node:fs';
import {afterEach, beforeEach, describe, expect, it} from 'vitest';
import {type LogFacts, log} from '../../../src/ops/probes/log.ts';
import {answerOf, contextOf, look, makeTree} from './support.ts';

let tree: ReturnType<typeof makeTree>;
let path: string;
beforeEach(() => {
	tree = makeTree({'a.log': 'one\ntwo\n'});
	path = `${tree.root}/a.log`;
});
afterEach(() => tree.remove());

const tail = (last: LogFacts | null = null) => look(log, contextOf({last, hints: {log: path}}));

describe('the tail of a log', () => {
	it('reads the end at first, then what was appended', async () => {
		const first = await tail();
		expect(first).toEqual({
			path,
			state: 'ok',
			inode: expect.stringMatching(/^\d+$/),
			offsetBytes: 8,
			lines: ['one', 'two'],
			unfinished: false,
			modifiedAt: expect.any(Number),
		});
		expect({...(await tail(first)), modifiedAt: first.modifiedAt}).toEqual(first);
		appendFileSync(path, 'three\n');
		const second = await tail(first);
		expect([second.lines, second.offsetBytes]).toEqual([['one', 'two', 'three'], 14]);
	});

	it('replaces an unfinished line by its next state, progress by carriage return included', async () => {
		appendFileSync(path, 'load 1/3\r');
		const first = await tail();
		expect([first.lines, first.unfinished, first.offsetBytes]).toEqual([['one', 'two', 'load 1/3'], true, 8]);
		appendFileSync(path, 'load 2/3\rload 3/3');
		const second = await tail(first);
		expect(second.lines).toEqual(['one', 'two', 'load 3/3']);
		appendFileSync(path, '\nready\n');
		const third = await tail(second);
		expect([third.lines, third.unfinished]).toEqual([['one', 'two', 'load 3/3', 'ready'], false]);
	});

	it('waits for the rest of a character', async () => {
		const euro = Buffer.from('5 €\n');
		appendFileSync(path, euro.subarray(0, 3));
		const first = await tail();
		expect(first.lines.at(-1)).toBe('5 \ufffd');
		appendFileSync(path, euro.subarray(3));
		expect((await tail(first)).lines).toEqual(['one', 'two', '5 €']);
	});

	it('begins anew when the log was truncated or replaced', async () => {
		const first = await tail();
		truncateSync(path);
		appendFileSync(path, 'new\n');
		const second = await tail(first);
		expect([second.lines, second.offsetBytes]).toEqual([['new'], 4]);
		writeFileSync(`${path}.1`, 'rotated, and longer than before\n');
		renameSync(`${path}.1`, path);
		expect((await tail(second)).lines).toEqual(['rotated, and longer than before']);
	});

	it('takes the last 64 KB of a large log, whole lines alone, and after a flood the end', async () => {
		writeFileSync(path, `${'x'.repeat(99)}\n`.repeat(2000));
		const first = await tail();
		expect(first.lines.length).toBe(655);
		expect(first.lines.every(line => line === 'x'.repeat(99))).toBe(true);
		appendFileSync(path, `${'y'.repeat(99)}\n`.repeat(3000));
		const second = await tail(first);
		expect([second.lines.length, second.lines[0], second.offsetBytes]).toEqual([655, 'y'.repeat(99), 500_000]);
	});

	it('lets go of a line that has no end', async () => {
		writeFileSync(path, 'z'.repeat(70_000));
		const first = await tail();
		expect(first.offsetBytes).toBe(70_000);
		appendFileSync(path, '!\nnext\n');
		expect((await tail(first)).lines.at(-1)).toBe('next');
	});

	it('keeps at most 2000 lines', async () => {
		writeFileSync(path, 'a\n'.repeat(3000));
		expect((await tail()).lines.length).toBe(2000);
	});

	it('another log is another beginning; none is asked where none is followed', async () => {
		const first = await tail();
		writeFileSync(`${tree.root}/b.log`, 'b\n');
		const other = await look(log, contextOf({last: first, hints: {log: `${tree.root}/b.log`}}));
		expect(other.lines).toEqual(['b']);
		expect(log.script(contextOf())).toBeNull();
	});

	it('a marker line inside a log opens no section', async () => {
		writeFileSync(path, 'a\n@@ relight section text\nok 1 2 3\n');
		expect((await tail()).lines).toEqual(['a', '@@ relight section text', 'ok 1 2 3']);
	});

	it('absent, and without an answer', async () => {
		const absent = await look(log, contextOf({hints: {log: `${tree.root}/none`}}));
		expect(absent).toEqual({
			path: `${tree.root}/none`,
			state: 'absent',
			inode: null,
			offsetBytes: 0,
			lines: [],
			unfinished: false,
			modifiedAt: null,
		});
		const silent = answerOf({text: ''}, 124);
		expect(() => log.parse(silent, contextOf({hints: {log: '/data/x'}}))).toThrow('log: no answer from /data/x');
	});
});
