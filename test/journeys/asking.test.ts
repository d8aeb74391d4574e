import {spawn} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect, test} from 'vitest';
import {startSshServer, type TestServer, type TestServerOptions} from '../support/ssh-server.ts';
import {closeTerminals, openScreen} from '../support/terminal.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/relight.js');
const SECRET = 'open sesame';
const moment = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));
let folder = '';
const servers: TestServer[] = [];

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), 'relight-asking-'));
});
afterEach(() => {
	closeTerminals();
	for (const server of servers.splice(0)) server.close();
	rmSync(folder, {recursive: true, force: true});
});

async function hostOn(options: TestServerOptions, ...more: string[]) {
	const server = await startSshServer(options);
	servers.push(server);
	const config = join(folder, 'relight.yaml');
	const {directory, port} = server;
	const route = `{ssh: "tester@127.0.0.1:${port}", key: ${directory}/id, knownHosts: ${directory}/known_hosts}`;
	writeFileSync(config, `hosts: {gpu: {routes: [${[route, ...more].join(', ')}]}}\n`);
	return {server, config};
}

const written = () =>
	readdirSync(folder, {recursive: true, withFileTypes: true})
		.filter(entry => entry.isFile())
		.map(entry => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
		.join('');

/** Without a controlling terminal, as from cron. */
async function headless(...args: string[]) {
	const child = spawn(process.execPath, [PROGRAM, ...args], {
		detached: true,
		stdio: ['ignore', 'pipe', 'ignore'],
		env: {...process.env, XDG_STATE_HOME: folder},
	});
	let text = '';
	child.stdout.on('data', chunk => {
		text += chunk;
	});
	const code = await new Promise(resolve => child.on('close', resolve));
	return {code, told: JSON.parse(text)};
}

test('the console shows a new host key, then asks for the passphrase, and the host comes up; neither is written', async () => {
	const {server, config} = await hostOn({hostKeyIn: 'unknown', passphrase: SECRET});
	const screen = openScreen(['--config', config], {env: {XDG_STATE_HOME: folder}});
	await screen.see('unknown host key');
	await screen.see(/ED25519 SHA256:[A-Za-z0-9+/]{43}/);
	await moment(400);
	await screen.press('y', 'e', 's', 'Enter');
	await screen.see(`passphrase of ${server.directory}/id:`);
	await moment(400);
	await screen.press('n', 'o', 'Enter');
	await screen.see('that was not it');
	await moment(400);
	await screen.press(...SECRET);
	await screen.see('(not shown)_');
	await screen.press('Enter');
	await screen.unsee('passphrase of a key');
	await screen.see(/ssh tester@127\.0\.0\.1/);
	expect(readFileSync(join(server.directory, 'known_hosts'), 'utf8')).toMatch(/ ssh-ed25519 \S+\n$/);
	await screen.press('q');
	expect(await screen.exited).toMatchObject({exitCode: 0});
	expect(screen.raw()).not.toContain(SECRET);
	expect(written()).toContain('accepted, to be kept in');
	expect(written()).not.toContain(SECRET);
});

test('another route is looked at while the question stands, and Esc leaves it at that', async () => {
	const {config} = await hostOn({hostKeyIn: 'unknown'}, '{local: true}');
	const screen = openScreen(['--config', config], {env: {XDG_STATE_HOME: folder}});
	await screen.see('unknown host key');
	await screen.see(/local/);
	await screen.press('Esc');
	await screen.unsee('unknown host key');
	await screen.see(/local/);
	await screen.press('q');
	expect(await screen.exited).toMatchObject({exitCode: 0});
	expect(written()).toContain('not accepted');
});

test('a key that was skipped is asked for again by C, and the better route is taken', async () => {
	const {server, config} = await hostOn({passphrase: SECRET}, '{local: true}');
	const screen = openScreen(['--config', config], {env: {XDG_STATE_HOME: folder}});
	await screen.see('passphrase of a key');
	await moment(400);
	await screen.press('Esc');
	await screen.unsee('passphrase of a key');
	await screen.see(/via local/);
	await screen.press('C');
	await screen.see('passphrase of a key');
	await screen.see(`passphrase of ${server.directory}/id:`);
	await moment(400);
	await screen.press(...SECRET, 'Enter');
	await screen.see(/via ssh tester@127/);
	await screen.press('C');
	await screen.see('there is nothing to try again');
	await screen.press('q');
	expect(await screen.exited).toMatchObject({exitCode: 0});
	expect(written()).toContain('the routes are tried again');
}, 60_000);

test('a headless command asks on its terminal, and never shows what is typed', async () => {
	const {config} = await hostOn({passphrase: SECRET});
	const screen = openScreen(['status', '--config', config], {env: {XDG_STATE_HOME: folder}});
	await screen.see(/passphrase of \S+\/id: /);
	screen.burst(`${SECRET}x\u007f\r`);
	expect((await screen.exited).exitCode).toBeLessThan(3);
	expect(screen.raw()).not.toContain('sesame');
	await screen.see(/up/);
});

test('Esc at the prompt skips the key, and the host is unreachable', async () => {
	const {config} = await hostOn({
		passphrase: SECRET,
		authenticate: (context, key) =>
			context.method === 'publickey' && context.key.data.equals(key) ? context.accept() : context.reject(['publickey']),
	});
	const screen = openScreen(['status', '--config', config], {env: {XDG_STATE_HOME: folder}});
	await screen.see(/passphrase of \S+\/id: /);
	await screen.press('Esc');
	expect(await screen.exited).toMatchObject({exitCode: 3});
	await screen.see('its passphrase was not given');
});

test('without a terminal the key, ssh-add and the command for a host key are named, and nothing hangs', async () => {
	const {server, config} = await hostOn({
		passphrase: SECRET,
		authenticate: context => context.reject(['publickey']),
	});
	const locked = await headless('status', '--config', config, '--json');
	expect([locked.code, locked.told.route.passedOver[0].reason]).toEqual([
		3,
		expect.stringContaining(`${server.directory}/id is encrypted: \`ssh-add ${server.directory}/id\``),
	]);
	const other = await hostOn({hostKeyIn: 'unknown'});
	const unknown = await headless('status', '--config', other.config, '--json');
	expect([unknown.code, unknown.told.route.passedOver[0].reason]).toEqual([
		3,
		expect.stringMatching(/ED25519 SHA256:.*ssh-keyscan -p \d+ -t ed25519 127\.0\.0\.1 >>/),
	]);
});
