import {spawn} from 'node:child_process';
import {join} from 'node:path';
import {expect, test} from 'vitest';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');

test('headless, with the patch lost: the hook is put in place, the server launched with its flags, and states come in', async () => {
	const child = spawn(process.execPath, [PROGRAM, 'drill', 'hook', '--unattended', '--json', '--seed', '4'], {
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let [out, said] = ['', ''];
	child.stdout.on('data', piece => {
		out += piece;
	});
	child.stderr.on('data', piece => {
		said += piece;
	});
	const code = await new Promise(resolve => child.on('close', resolve));
	expect(code, said).toBe(0);
	const {outcome, samples, wrongKills, dumps, steps} = JSON.parse(out);
	expect({outcome, wrongKills, ...samples}).toMatchObject({outcome: 'recovered', wrongKills: 0, lost: 0, corrupt: 0});
	expect(samples.after).toBeGreaterThan(samples.before);
	expect(dumps).toMatch(/^relight_hs\.py in torch \d|^a TypeScript writer of the same bytes/);
	expect(steps.filter(({id}: {id: string}) => id.startsWith('send-'))).toHaveLength(2);
	expect(said).toContain('send relight_hs.py, check it on the host');
	expect(said).toMatch(/done {4}canary: canary: both dumps /);
}, 180_000);
