import {execFileSync} from 'node:child_process';
import {EventEmitter} from 'node:events';
import {closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, describe, expect, it} from 'vitest';
import {restoreTerminal} from '../../../src/ui/terminal/restore.ts';
import {Screen} from '../../../src/ui/terminal/screen.ts';

/** A pipe stands for the terminal: it fills up as a terminal does when nobody reads it. */
let folder: string;
let reader: number;
let writer: number;
let tty: EventEmitter & {columns: number; rows: number};
let screen: Screen;

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'screen-'));
	const path = join(folder, 'pipe');
	execFileSync('mkfifo', [path]);
	reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
	writer = openSync(path, constants.O_WRONLY);
	tty = Object.assign(new EventEmitter(), {columns: 80, rows: 24});
	screen = new Screen(tty, writer);
});

afterEach(() => {
	screen.release();
	closeSync(reader);
	closeSync(writer);
	rmSync(folder, {recursive: true});
});

function read(): Buffer {
	const chunks: Buffer[] = [];
	const buffer = Buffer.alloc(1 << 16);
	for (;;) {
		try {
			const size = readSync(reader, buffer, 0, buffer.length, null);
			if (size === 0) return Buffer.concat(chunks);
			chunks.push(Buffer.from(buffer.subarray(0, size)));
		} catch {
			return Buffer.concat(chunks);
		}
	}
}

async function until(condition: () => boolean): Promise<void> {
	for (let turn = 0; turn < 500 && !condition(); turn++) await new Promise(resolve => setTimeout(resolve, 4));
	expect(condition()).toBe(true);
}

describe('the screen', () => {
	it('never waits for a terminal that is not read, and loses nothing', async () => {
		const frame = `${'x'.repeat(300_000)}end`;
		const before = performance.now();
		screen.write(frame);
		expect(performance.now() - before).toBeLessThan(50);
		expect(screen.busy()).toBe(true);
		let seen = '';
		await until(() => {
			seen += read().toString();
			return !screen.busy();
		});
		seen += read().toString();
		expect(seen).toBe(frame);
	});

	it('leaves the flags of the shell’s own description alone', () => {
		const flags = Number.parseInt(
			/flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${writer}`, 'utf8'))?.[1] ?? '',
			8,
		);
		expect(flags & constants.O_NONBLOCK).toBe(0);
	});

	it('gives up a last word after its bound when nobody reads', () => {
		screen.writeNow('y'.repeat(1 << 17), 10);
		const before = performance.now();
		expect(screen.writeNow('restore', 60)).toBe('full');
		expect(performance.now() - before).toBeLessThan(150);
		expect(screen.writeNow('', 10)).toBe('written');
	});

	it('tells of one size when the window has come to rest', async () => {
		const sizes: string[] = [];
		screen.on('resize', () => sizes.push(`${screen.columns}x${screen.rows}`));
		for (const columns of [100, 120, 140]) {
			tty.columns = columns;
			tty.rows = 45;
			tty.emit('resize');
		}
		expect([screen.columns, screen.rows]).toEqual([80, 24]);
		await until(() => sizes.length > 0);
		expect(sizes).toEqual(['140x45']);
	});

	it('is given back: raw mode off, paste and alternate screen off, the cursor shown', () => {
		const modes: boolean[] = [];
		expect(restoreTerminal(screen, {isTTY: true, setRawMode: on => modes.push(on)})).toBe('written');
		expect(modes).toEqual([false]);
		expect(read().toString()).toBe('\x18\x1b[?2026l\x1b[?2004l\x1b[?1049l\x1b[0m\x1b[?25h');
	});

	it('says that it is gone when nobody is at the other end', () => {
		closeSync(reader);
		expect(restoreTerminal(screen, {})).toBe('gone');
		reader = openSync('/dev/null', constants.O_RDONLY);
	});
});
