import {execFileSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect} from 'vitest';
import {noDeadMount, withDeadMount} from '../../bin/bench/dead-mount.ts';
import {closeTerminals, openScreen, type Screen} from '../support/terminal.ts';
import {until} from '../support/until.ts';
import {lab} from './needs.ts';
import {childrenOf} from './sshd.ts';

let folder = '';
const at = (name: string) => join(folder, name);

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'relight-mounts-'));
	for (const name of ['mount', 'alive']) mkdirSync(at(name));
	const mounts = `{${at('mount')}: {}, ${at('alive')}: {type: tmpfs}}`;
	writeFileSync(at('relight.yaml'), `hosts: {lab: {routes: [{local: true}], expect: {mounts: ${mounts}}}}\n`);
});
afterEach(() => {
	closeTerminals();
	rmSync(folder, {recursive: true, force: true});
});

/** Beside the mount that dies there is one that lives, in the same namespace. */
const withLiving = (prefix: readonly string[]): readonly string[] => [
	...prefix,
	'sh',
	'-c',
	'mount -t tmpfs -o size=8m lab-alive "$0" && exec "$@"',
	at('alive'),
];

const open = (prefix: readonly string[]): Screen =>
	openScreen(['--config', at('relight.yaml')], {
		prefix: withLiving(prefix),
		env: {XDG_STATE_HOME: at('state'), HOME: process.env.HOME ?? '/root', LANG: 'C.UTF-8'},
	});

const family = (pid: number): readonly number[] => [pid, ...childrenOf(pid).flatMap(family)];

/** What looks at the dead mount and has not come back. Its shell is gone, so that it is nobody's child: found by its words. */
function lookers(): readonly number[] {
	return readdirSync('/proc')
		.filter(name => /^\d+$/.test(name))
		.map(Number)
		.filter(pid => {
			try {
				const [name = '', ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
				return name.endsWith('stat') && words.includes(at('mount'));
			} catch {
				return false;
			}
		});
}

async function keysAnswer(screen: Screen): Promise<void> {
	await screen.press('?');
	await screen.see('to a pane by its number', 5_000);
	await screen.press('Esc');
	await screen.press('1');
	await screen.see(/\[1 GPU\]/, 5_000);
	await screen.press('3');
	await screen.see(/\[3 MOUNTS?\]/, 5_000);
}

/** Fills half of the mount that lives, from inside the console's namespace, and waits for that on the screen. */
async function othersGoOn(screen: Screen): Promise<void> {
	const inside = family(screen.pid).at(-1) ?? screen.pid;
	const script = `dd if=/dev/zero of=${at('alive')}/file bs=1M count=4 2>/dev/null`;
	execFileSync('nsenter', ['-t', String(inside), '-m', 'sh', '-c', script]);
	await until(
		() => /\bok +\S*\/alive [^\n]*\b50%/.test(screen.text()),
		30_000,
		() => screen.text(),
	);
}

/** Over several looks there is one child on the dead mount, and it is always the same one. */
async function oneIsStuck(): Promise<void> {
	await until(() => lookers().length === 1, 20_000);
	const seen = new Set<number>();
	for (const end = Date.now() + 17_000; Date.now() < end; ) {
		for (const pid of lookers()) seen.add(pid);
		await new Promise(resolve => setTimeout(resolve, 50));
	}
	expect([seen.size, lookers().length]).toEqual([1, 1]);
}

async function endsAtOnce(screen: Screen): Promise<void> {
	let code: number | null = null;
	screen.exited.then(({exitCode}) => {
		code = exitCode;
	});
	await screen.press('q');
	await until(() => code !== null, 5_000, 'the console ending');
	expect(code).toBe(0);
	expect(screen.alternate).toBe(false);
}

lab('a mount that is dead before the console starts costs one stuck child and nothing else', noDeadMount, async () => {
	const screen = open(withDeadMount(at('mount'), []));
	await screen.press('3');
	await until(
		() => /\bHUNG +\S*\/mount /.test(screen.text()),
		30_000,
		() => screen.text(),
	);
	await keysAnswer(screen);
	await othersGoOn(screen);
	await oneIsStuck();
	await keysAnswer(screen);
	await endsAtOnce(screen);
});

lab('a mount that dies while the console runs costs one stuck child and nothing else', noDeadMount, async () => {
	const script = join(import.meta.dirname, 'mount-that-dies.py');
	const screen = open(['unshare', '--mount', 'python3', script, at('mount'), at('flag')]);
	await screen.press('3');
	await until(
		() => /\bok +\S*\/mount [^\n]*\b75%/.test(screen.text()),
		30_000,
		() => screen.text(),
	);
	writeFileSync(at('flag'), '');
	await until(
		() => /\bHUNG +\S*\/mount /.test(screen.text()),
		30_000,
		() => screen.text(),
	);
	await keysAnswer(screen);
	await othersGoOn(screen);
	await oneIsStuck();
	await endsAtOnce(screen);
});
