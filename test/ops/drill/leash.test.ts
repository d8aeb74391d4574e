import {spawn} from 'node:child_process';
import {existsSync, readdirSync, readFileSync, readlinkSync} from 'node:fs';
import {createInterface} from 'node:readline';
import {afterAll, beforeAll, expect, test} from 'vitest';
import {bundle} from './support/part-program.ts';
import {until} from './support/shell.ts';

/** A drill in a process of its own, with things running in its box that look at nothing: as hard to end as they come. */
const DRILL = `
import {spawnSync} from 'node:child_process';
import {buildBox} from './src/ops/drill/box.ts';
const box = await buildBox({seed: 5, scale: 0.05, program: ['/bin/false']});
const {default: ssh2} = await import('ssh2');
const {readFileSync} = await import('node:fs');
const client = new ssh2.Client();
client.on('ready', () => {
	client.exec('setsid -f sh -c "trap : TERM HUP; while :; do sleep 60; done"; sleep 61 & sleep 62', () => {});
	client.exec('/bin/sh', () => {});
	client.exec('systemd-run --unit=stubborn -- sh -c "trap : TERM HUP; sleep 63"', () => {});
	setTimeout(() => console.log(JSON.stringify({leash: box.paths.leash, directory: box.directory})), 900);
});
client.connect({host: '127.0.0.1', port: box.hypervisor.port, username: 'root', privateKey: readFileSync(box.paths.identity)});
setInterval(() => {}, 1000);
`;

let program: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
	program = await bundle(DRILL);
});
afterAll(() => program.remove());

/** Zombies have no descriptors any more: they count as ended by themselves. */
function boxProcesses(leash: string): {pid: number; name: string}[] {
	const found: {pid: number; name: string}[] = [];
	for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
		try {
			if (!readlinkSync(`/proc/${pid}/fd/3`).startsWith(leash)) continue;
			found.push({pid, name: readFileSync(`/proc/${pid}/comm`, 'utf8').trim()});
		} catch {
			// Not ours, or gone.
		}
	}
	return found;
}

test('every process of the box ends within 5 s of a kill -9 of the drill', async () => {
	const drill = spawn(process.execPath, [program.file], {stdio: ['ignore', 'pipe', 'inherit']});
	const lines = createInterface({input: drill.stdout});
	const {leash, directory}: {leash: string; directory: string} = await new Promise(resolve =>
		lines.once('line', line => resolve(JSON.parse(line))),
	);
	const before = boxProcesses(leash);
	expect(before.filter(({name}) => name === 'sleep').length).toBeGreaterThanOrEqual(4);
	expect(before.filter(({name}) => name.startsWith('VLLM')).length).toBe(8);
	process.kill(drill.pid ?? 0, 'SIGKILL');
	const left = await until(
		() => boxProcesses(leash),
		processes => processes.length === 0,
		5_000,
	);
	expect(left).toEqual([]);
	await until(
		() => existsSync(directory),
		there => !there,
		5_000,
	);
}, 30_000);
