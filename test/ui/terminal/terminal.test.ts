import {EventEmitter} from 'node:events';
import {afterEach, describe, expect, it} from 'vitest';
import {createTerminal, type Terminal, type TerminalOptions} from '../../../src/ui/terminal/terminal.ts';

let terminal: Terminal | null = null;
afterEach(() => terminal?.leave(0));

function open(options: Partial<TerminalOptions> = {}) {
	const told: string[] = [];
	const stdout = Object.assign(new EventEmitter(), {columns: 80, rows: 24});
	const stdin = Object.assign(new EventEmitter(), {isTTY: true, setRawMode: (on: boolean) => told.push(`raw ${on}`)});
	const stderr = Object.assign(new EventEmitter(), {
		write: (text: string) => told.push(`stderr ${text.split('\n')[0]}`),
	});
	const opened = createTerminal({
		stdout,
		stdin,
		stderr,
		onLeave: code => told.push(`leave ${code}`),
		stop: () => told.push('stop'),
		...options,
	});
	opened.screen.writeNow = text => {
		told.push(text.includes('?1049l') ? 'restore' : text);
		return 'written';
	};
	opened.attach({
		unmount: () => told.push('unmount'),
		suspendTerminal: (async () => {
			told.push('suspend');
			const resume = async () => void told.push('resume');
			return {resume, [Symbol.asyncDispose]: resume};
		}) as never,
	});
	terminal = opened;
	return {terminal: opened, told, stdout, stdin};
}

async function until(condition: () => boolean): Promise<void> {
	for (let turn = 0; turn < 500 && !condition(); turn++) await new Promise(resolve => setTimeout(resolve, 4));
	expect(condition()).toBe(true);
}

describe('the terminal', () => {
	it('is raw before the first frame', () => {
		expect(open().told).toEqual(['raw true']);
	});

	it('is left once, by one path, whatever comes after', async () => {
		const {terminal, told} = open();
		terminal.leave(0);
		terminal.leave(1);
		process.emit('SIGTERM');
		expect(await terminal.left).toBe(0);
		expect(told).toEqual(['raw true', 'leave 0', 'unmount', 'raw false', 'restore']);
	});

	it.each([
		['SIGTERM', 143],
		['SIGHUP', 129],
		['SIGINT', 130],
		['SIGQUIT', 131],
	] as const)('is restored on %s', async (signal, code) => {
		const {terminal, told} = open();
		process.emit(signal);
		expect(await terminal.left).toBe(code);
		expect(told).toContain('restore');
	});

	it('shows the stack of a crash only after the screen is back', async () => {
		const {terminal, told} = open();
		terminal.leave(2, new Error('boom'));
		expect(await terminal.left).toBe(2);
		expect(told.slice(-2)).toEqual(['restore', 'stderr Error: boom']);
	});

	it('leaves quietly when the terminal vanishes', async () => {
		const {terminal, stdin} = open();
		stdin.emit('error', Object.assign(new Error('read EIO'), {code: 'EIO'}));
		expect(await terminal.left).toBe(129);
	});

	it('draws from nothing in a new tree when the size has changed', async () => {
		const {terminal, told, stdout} = open();
		let told_ = 0;
		terminal.viewport.subscribe(() => told_++);
		stdout.columns = 140;
		stdout.emit('resize');
		await until(() => told.includes('resume'));
		expect(terminal.viewport.get()).toEqual({columns: 140, rows: 24, epoch: 1});
		expect(told_).toBe(1);
		expect(told.slice(1)).toEqual(['suspend', 'resume']);
	});

	it('stops with the terminal handed back and takes it up again', async () => {
		const {terminal, told} = open();
		terminal.suspend();
		terminal.suspend();
		await until(() => told.includes('resume'));
		expect(told.slice(1)).toEqual(['suspend', 'stop', 'resume']);
	});

	it('takes raw mode back when somebody else has continued it', async () => {
		const {told} = open();
		process.emit('SIGCONT');
		await until(() => told.includes('resume'));
		expect(told.slice(1)).toEqual(['raw true', 'suspend', 'resume']);
	});
});
