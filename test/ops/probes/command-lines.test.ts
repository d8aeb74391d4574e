import {describe, expect, it} from 'vitest';
import {commandLines} from '../../../src/ops/probes/command-lines.ts';
import {answerOf, contextOf, look, makeTree, NOW_MS, pathWith} from './support.ts';

const stat = (pid: number, ticks: number) =>
	`${pid} (a) R 1 (b) S 1 ${pid} ${pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${ticks} 0 420 0 0 0 0 0 0\n`;

describe('command lines', () => {
	it('are asked for the pids that nobody has read yet, and kept by who the process is', async () => {
		const tree = makeTree({
			'proc/9/stat': stat(9, 50),
			'proc/9/cmdline': 'python3\0-c\0two words\nand a line\0',
			'proc/12/stat': stat(12, 60),
			'proc/12/cmdline': '',
			'proc/30/stat': stat(30, 70),
			'proc/30/cmdline': 'x\0',
		});
		const roots = {proc: `${tree.root}/proc`};
		const first = await look(commandLines, contextOf({hints: {unreadLines: [9, 12, 77]}}), roots);
		expect(first.lines).toEqual(
			new Map([
				['9@50', 'python3 -c two words\nand a line'],
				['12@60', ''],
			]),
		);
		const context = contextOf({last: {lines: new Map([...first.lines, ['30@1', 'old']])}, hints: {unreadLines: [30]}});
		const second = await look(commandLines, context, roots);
		expect(second.lines).toEqual(new Map([...first.lines, ['30@1', 'old'], ['30@70', 'x']]));
		expect(await look(commandLines, contextOf({last: second, hints: {unreadLines: [9, 30]}}), roots)).toBe(second);
		expect(commandLines.script(contextOf())).toBeNull();
		tree.remove();
	});

	it('a read that never ends costs its own pid alone', async () => {
		const tree = makeTree({
			'proc/20262/stat': stat(20262, 1533100),
			'proc/20262/cmdline': '',
			'proc/9/stat': stat(9, 50),
			'proc/9/cmdline': 'python3\0',
			'bin/head': '#!/bin/sh\ncase "$*" in *20262*) exec sleep 20 ;; esac\nexec /usr/bin/head "$@"\n',
		});
		const startedAt = Date.now();
		const facts = await look(commandLines, contextOf({hints: {unreadLines: [20262, 9]}}), {
			proc: `${tree.root}/proc`,
			path: pathWith(tree.root),
		});
		expect(facts.lines).toEqual(
			new Map([
				['20262@1533100', null],
				['9@50', 'python3'],
			]),
		);
		expect(Date.now() - startedAt).toBeLessThan(5000);
		tree.remove();
	});

	it('a process that was announced and has no answer is unavailable', () => {
		const at = `\n@${NOW_MS}`;
		const text = `${at} 9 50\npython3\0\n@${NOW_MS - 1} 1 1\n\0${at} = 0\n${at} 13 70\n${at} = 137\n${at} 12 60\nhal`;
		expect(commandLines.parse(answerOf({lines: text}), contextOf()).lines).toEqual(
			new Map([
				['9@50', `python3 \n@${NOW_MS - 1} 1 1\n`],
				['13@70', null],
				['12@60', null],
			]),
		);
	});

	it('looks at this very process', async () => {
		const facts = await look(commandLines, contextOf({hints: {unreadLines: [process.pid]}}));
		expect([...facts.lines.values()][0]).toContain('node');
	});
});
