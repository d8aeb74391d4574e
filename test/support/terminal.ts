import {join} from 'node:path';
import {type IPty, spawn} from '@lydell/node-pty';
import xterm from '@xterm/headless';
import {until} from './until.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');

/** The bundled program in a real pseudo-terminal, and what a person would see of it. */
export type Screen = {
	readonly pid: number;
	/** Rows as seen, trailing blanks cut. */
	rows(): string[];
	text(): string;
	/** Waits until the text is on the screen. */
	see(text: string | RegExp, limitMs?: number): Promise<void>;
	unsee(text: string | RegExp, limitMs?: number): Promise<void>;
	/** One key at a time, each its own write. */
	press(...keys: string[]): Promise<void>;
	/** Everything in one write, as a paste or a lagging line delivers it. */
	burst(text: string): void;
	resize(columns: number, rows: number): void;
	/** Stops reading, as Ctrl-S or a dead link does. */
	stall(): void;
	goOn(): void;
	readonly alternate: boolean;
	readonly cursorVisible: boolean;
	readonly exited: Promise<{exitCode: number; signal: number | undefined}>;
	kill(signal: string): void;
	/** Everything the program has written, escape codes included. */
	raw(): string;
};

const open: IPty[] = [];

/** Ends what a failed test left. */
export function closeTerminals(): void {
	for (const pty of open.splice(0)) {
		try {
			pty.kill('SIGKILL');
		} catch {
			// It has ended already.
		}
	}
}

export function openScreen(
	args: readonly string[],
	{
		columns = 140,
		rows = 45,
		env = {},
		prefix = [],
	}: {columns?: number; rows?: number; env?: Record<string, string>; prefix?: readonly string[]} = {},
): Screen {
	const terminal = new xterm.Terminal({cols: columns, rows, allowProposedApi: true, scrollback: 100});
	let shown = true;
	let raw = '';
	const [program = '', ...words] = [...prefix, process.execPath, PROGRAM, ...args];
	const pty = spawn(program, words, {
		cols: columns,
		rows,
		cwd: '/',
		env: {
			PATH: process.env.PATH ?? '',
			HOME: '/nonexistent',
			TERM: 'xterm-256color',
			XDG_STATE_HOME: process.env.RELIGHT_TEST_STATE ?? '/tmp',
			...env,
		},
	});
	open.push(pty);
	pty.onData(data => {
		raw += data;
		if (data.includes('\u001b[?25l')) shown = data.lastIndexOf('\u001b[?25h') > data.lastIndexOf('\u001b[?25l');
		else if (data.includes('\u001b[?25h')) shown = true;
		terminal.write(data);
	});
	terminal.onData(data => pty.write(data));
	const exited = new Promise<{exitCode: number; signal: number | undefined}>(resolve =>
		pty.onExit(({exitCode, signal}) => resolve({exitCode, signal})),
	);
	const screen: Screen = {
		pid: pty.pid,
		rows: () =>
			Array.from(
				{length: terminal.rows},
				(_, index) =>
					terminal.buffer.active.getLine(terminal.buffer.active.viewportY + index)?.translateToString(true) ?? '',
			),
		text: () => screen.rows().join('\n'),
		see: (text, limitMs = 20_000) =>
			until(
				() => matches(screen.text(), text),
				limitMs,
				() => `seeing ${text} in\n${screen.text()}\nwhich`,
			),
		unsee: (text, limitMs = 20_000) => until(() => !matches(screen.text(), text), limitMs, `no longer seeing ${text}`),
		async press(...keys) {
			for (const key of keys) {
				pty.write(KEYS[key] ?? key);
				await new Promise(resolve => setTimeout(resolve, 60));
			}
		},
		burst: text => pty.write(text),
		resize(nextColumns, nextRows) {
			terminal.resize(nextColumns, nextRows);
			pty.resize(nextColumns, nextRows);
		},
		stall: () => pty.pause(),
		goOn: () => pty.resume(),
		get alternate() {
			return terminal.buffer.active.type === 'alternate';
		},
		get cursorVisible() {
			return shown;
		},
		exited,
		kill: signal => pty.kill(signal),
		raw: () => raw,
	};
	return screen;
}

const matches = (text: string, wanted: string | RegExp) =>
	typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text);

const KEYS: Record<string, string> = {
	Enter: '\r',
	Esc: '\u001b',
	Tab: '\t',
	Up: '\u001b[A',
	Down: '\u001b[B',
	PgDn: '\u001b[6~',
	PgUp: '\u001b[5~',
	'Ctrl-C': '\u0003',
	'Ctrl-L': '\u000c',
	'Ctrl-Z': '\u001a',
};
