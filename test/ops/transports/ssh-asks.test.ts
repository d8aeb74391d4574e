import {mkdtempSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {AuthContext} from 'ssh2';
import {afterEach, describe, expect, test} from 'vitest';
import {openDesk} from '../../../src/ops/transports/desk.ts';
import type {Asker} from '../../../src/ops/transports/question.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from '../../../src/ops/transports/transport.ts';
import {answering} from '../../support/asker.ts';
import {OPERATOR, startSshServer, type TestServer, type TestServerOptions} from '../../support/ssh-server.ts';
import {until} from '../../support/until.ts';

const servers: TestServer[] = [];
const transports: Transport[] = [];
afterEach(() => {
	for (const transport of transports.splice(0)) transport.close();
	for (const server of servers.splice(0)) server.close();
});

async function start(options: TestServerOptions = {}) {
	const server = await startSshServer(options);
	servers.push(server);
	return server;
}

function reach(server: TestServer, asker: Asker | null, change: Partial<TestServer['route']> = {}) {
	const route = {...server.route, ...change};
	const transport = sshTransport(route, SYSTEM_ENVIRONMENT, OPERATOR, {desk: openDesk(asker)});
	transports.push(transport);
	return transport;
}

/** `true`, or why not. */
async function knock(transport: Transport, limitMs = 8_000) {
	const opened = await transport.open(['true'], limitMs);
	if (opened.ok) opened.value.stdout.resume();
	return opened.ok || opened.failure;
}

/** Knocks until nothing is asked any more. */
async function settled(transport: Transport) {
	for (;;) {
		const outcome = await knock(transport);
		if (outcome === true || outcome.kind !== 'asks') return outcome;
		await transport.asking;
	}
}

/** Only the user's own key, or what `other` lets in. */
const byKey =
	(
		other: (context: AuthContext) => boolean = () => false,
		methods: ('publickey' | 'password' | 'keyboard-interactive')[] = ['publickey'],
	) =>
	(context: AuthContext, key: Buffer) => {
		const right = context.method === 'publickey' && context.key.data.equals(key);
		if (right || other(context)) return context.accept();
		if (context.method !== 'keyboard-interactive') context.reject(methods);
	};

const byPassword = (password: string) =>
	byKey(context => context.method === 'password' && context.password === password, ['publickey', 'password']);

/** One round of prompts, then in with the right answers or out. */
const byPrompts = (prompts: {prompt: string; echo: boolean}[], right: string) => (context: AuthContext) => {
	if (context.method !== 'keyboard-interactive') return context.reject(['keyboard-interactive']);
	context.prompt(prompts, 'the title', 'read this', answers => {
		if (answers.join(' ') === right) context.accept();
		else context.reject(['keyboard-interactive']);
	});
};

describe('an encrypted key', () => {
	test('asks once for its passphrase, fails at once meanwhile, and opens every later connection', async () => {
		const server = await start({passphrase: 'open sesame', authenticate: byKey()});
		const asker = answering();
		const transport = reach(server, asker);
		const file = join(server.directory, 'id');
		expect(await knock(transport)).toEqual({kind: 'asks', detail: `passphrase of ${file}`});
		expect(await knock(transport)).toEqual({kind: 'asks', detail: `passphrase of ${file}`});
		expect(asker.asked).toEqual([{kind: 'passphrase', file, again: false}]);
		const asking = transport.asking;
		asker.answer(['open sesame']);
		await asking;
		expect(await knock(transport)).toBe(true);
		transport.close();
		expect(await knock(transport)).toBe(true);
		expect(asker.asked).toHaveLength(1);
	});

	test('a wrong passphrase asks again, three times at most, and then the key is left out', async () => {
		const server = await start({passphrase: 'open sesame', authenticate: byKey()});
		const asker = answering(['a'], ['b'], ['c']);
		const outcome = await settled(reach(server, asker));
		expect(asker.asked.map(each => 'again' in each && each.again)).toEqual([false, true, true]);
		expect(outcome).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(/no offered key was accepted .*\/id: 3 passphrases did not open it$/),
		});
	});

	test('skipped, it is not asked for again, and other ways to log in go on', async () => {
		const server = await start({passphrase: 'open sesame', authenticate: byPassword('tower')});
		const asker = answering(null, ['tower']);
		const transport = reach(server, asker);
		expect(await settled(transport)).toBe(true);
		expect(asker.asked.map(each => each.kind)).toEqual(['passphrase', 'password']);
	});

	test('with nobody there it is refused in words that name the key and ssh-add', async () => {
		const server = await start({passphrase: 'open sesame', authenticate: byKey()});
		const file = join(server.directory, 'id');
		expect(await knock(reach(server, null))).toEqual({
			kind: 'denied',
			detail: `tester@[127.0.0.1]:${server.port} refuses the login: no offered key was accepted (it takes publickey); ${file} is encrypted: \`ssh-add ${file}\` opens it for this session`,
		});
	});

	test('is asked for once by two routes that want the same one', async () => {
		const server = await start({passphrase: 'open sesame', authenticate: byKey()});
		const asker = answering(['open sesame']);
		const desk = openDesk(asker);
		const both = [0, 1].map(() => sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR, {desk}));
		transports.push(...both);
		expect(await Promise.all(both.map(settled))).toEqual([true, true]);
		expect(asker.asked).toHaveLength(1);
	});
});

test('an agent that is gone, or that never answers, does not stand before the keys', async () => {
	const server = await start({authenticate: byKey()});
	const gone = sshTransport(server.route, SYSTEM_ENVIRONMENT, {...OPERATOR, agent: '/nonexistent/agent'});
	transports.push(gone);
	expect(await knock(gone)).toBe(true);
	const socket = join(server.directory, 'agent');
	const mute = createServer(() => {});
	await new Promise<void>(resolve => mute.listen(socket, resolve));
	const stuck = sshTransport(server.route, SYSTEM_ENVIRONMENT, {...OPERATOR, agent: socket});
	transports.push(stuck);
	expect(await knock(stuck)).toBe(true);
	writeFileSync(join(server.directory, 'id'), 'no key');
	const nothing = await Promise.all(
		['/nonexistent/agent', socket].map(agent => {
			const transport = sshTransport(server.route, SYSTEM_ENVIRONMENT, {...OPERATOR, agent});
			transports.push(transport);
			return knock(transport);
		}),
	);
	expect(nothing).toEqual([
		{kind: 'denied', detail: expect.stringMatching(/the agent at \/nonexistent\/agent is gone \(ENOENT\)$/)},
		{kind: 'denied', detail: expect.stringMatching(/the agent at \S+\/agent does not answer$/)},
	]);
	mute.close();
});

describe('a password', () => {
	test('is asked for when the server takes one, again when it was wrong, and remembered', async () => {
		const server = await start({authenticate: byPassword('tower')});
		const asker = answering(['bridge'], ['tower']);
		// Another user's key, so that it comes to the password.
		const other = await start();
		const transport = reach(server, asker, {identityFile: join(other.directory, 'id')});
		expect(await settled(transport)).toBe(true);
		expect(asker.asked).toEqual([false, true].map(again => ({kind: 'password', account: accountOf(server), again})));
		transport.close();
		expect(await knock(transport)).toBe(true);
		expect(asker.asked).toHaveLength(2);
	});

	test('is never asked for by a server that takes none', async () => {
		const server = await start({authenticate: byKey()});
		const other = await start();
		const asker = answering();
		const outcome = await settled(reach(server, asker, {identityFile: join(other.directory, 'id')}));
		expect(outcome).toMatchObject({kind: 'denied'});
		expect(asker.asked).toEqual([]);
	});
});

const accountOf = (server: TestServer) => `tester@[127.0.0.1]:${server.port}`;

describe('keyboard-interactive', () => {
	const PROMPTS = [
		{prompt: 'Password: ', echo: false},
		{prompt: 'Code \u001b[31m: ', echo: true},
	];

	test('shows what the server asks as it came, waits on the same connection, and logs in with the answers', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		const asker = answering();
		const transport = reach(server, asker);
		expect(await knock(transport)).toEqual({kind: 'asks', detail: `what ${accountOf(server)} asks for`});
		expect(asker.asked).toEqual([
			{
				kind: 'prompts',
				account: accountOf(server),
				title: 'the title',
				instructions: 'read this',
				prompts: [
					{text: 'Password: ', echo: false},
					{text: 'Code \u001b[31m: ', echo: true},
				],
			},
		]);
		const {asking} = transport;
		asker.answer(['tower', '123']);
		await asking;
		expect(await knock(transport)).toBe(true);
		expect(server.connections()).toBe(1);
	});

	test('the limit stands still while the operator thinks', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		const asker = answering();
		const transport = reach(server, asker);
		expect(await knock(transport, 700)).toMatchObject({kind: 'asks'});
		await new Promise(resolve => setTimeout(resolve, 1_000));
		const {asking} = transport;
		asker.answer(['tower', '123']);
		await asking;
		expect(await knock(transport)).toBe(true);
	});

	test('skipped, it is not asked again', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		const asker = answering(null);
		const transport = reach(server, asker);
		const words = /its prompts were not answered$/;
		expect(await settled(transport)).toEqual({kind: 'denied', detail: expect.stringMatching(words)});
		expect(await knock(transport)).toEqual({kind: 'denied', detail: expect.stringMatching(words)});
		expect(asker.asked).toHaveLength(1);
	});

	test('answered wrong three times it is given up', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		const asker = answering(['a', 'b'], ['c', 'd'], ['e', 'f']);
		expect(await settled(reach(server, asker))).toMatchObject({kind: 'denied'});
		expect(asker.asked).toHaveLength(3);
	});

	test('a server that waits no longer withdraws its question', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		const asker = answering();
		const transport = reach(server, asker);
		await knock(transport);
		server.close();
		await until(() => asker.withdrawn.length === 1);
		await until(() => transport.asking === null);
	});

	test('with nobody there it is refused in words', async () => {
		const server = await start({authenticate: byPrompts(PROMPTS, 'tower 123')});
		expect(await knock(reach(server, null))).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(/it takes keyboard-interactive\); the server would ask .*: that needs a terminal$/),
		});
	});
});

describe('an unknown host key', () => {
	const knownHosts = (server: TestServer) => readFileSync(join(server.directory, 'known_hosts'), 'utf8');

	test('is shown with type and fingerprint, kept on yes as one more line, and known from then on', async () => {
		const server = await start({hostKeyIn: 'unknown'});
		const file = join(server.directory, 'known_hosts');
		writeFileSync(file, 'other ssh-ed25519 AAAA without an end');
		const sshConfigFile = join(server.directory, 'config');
		writeFileSync(sshConfigFile, 'HashKnownHosts no\n');
		const asker = answering(['yes']);
		expect(await settled(reach(server, asker, {sshConfigFile}))).toBe(true);
		expect(asker.asked).toEqual([
			{
				kind: 'host-key',
				name: `[127.0.0.1]:${server.port}`,
				label: expect.stringMatching(/^ED25519 SHA256:[A-Za-z0-9+/]{43}$/),
				file,
			},
		]);
		const lines = knownHosts(server).split('\n');
		expect(lines).toEqual([
			'other ssh-ed25519 AAAA without an end',
			expect.stringMatching(/^\[127\.0\.0\.1\]:\d+ ssh-ed25519 AAAA\S+$/),
			'',
		]);
		expect(await knock(reach(server, null))).toBe(true);
	});

	test('the file and its folder are made for the owner alone when there are none', async () => {
		const server = await start({hostKeyIn: 'unknown'});
		const folder = join(mkdtempSync(join(tmpdir(), 'relight-known-')), 'ssh');
		const knownHostsFile = join(folder, 'known_hosts');
		expect(await settled(reach(server, answering(['yes']), {knownHostsFile}))).toBe(true);
		expect([folder, knownHostsFile].map(path => statSync(path).mode & 0o777)).toEqual([0o700, 0o600]);
	});

	test('its name is hashed where HashKnownHosts says so', async () => {
		const server = await start({hostKeyIn: 'unknown'});
		const sshConfigFile = join(server.directory, 'config');
		writeFileSync(sshConfigFile, 'HashKnownHosts yes\n');
		expect(await settled(reach(server, answering(['yes']), {sshConfigFile}))).toBe(true);
		expect(knownHosts(server)).toMatch(/^\|1\|\S+\|\S+ ssh-ed25519 \S+\n$/);
		expect(await knock(reach(server, null))).toBe(true);
	});

	test.each([[['y']], [['']], [null]])('%j is no yes: nothing is kept and nothing asked again', async answer => {
		const server = await start({hostKeyIn: 'unknown'});
		const asker = answering(answer);
		const transport = reach(server, asker);
		const refused = {kind: 'denied', detail: expect.stringMatching(/is not in known_hosts .*: it was not accepted$/)};
		expect(await settled(transport)).toEqual(refused);
		expect(await knock(transport)).toEqual(refused);
		expect([asker.asked.length, knownHosts(server)]).toEqual([1, '']);
	});

	test('a file that cannot be written is told, and the key is not trusted', async () => {
		const server = await start({hostKeyIn: 'unknown'});
		const outcome = await settled(reach(server, answering(['yes']), {knownHostsFile: '/proc/known_hosts'}));
		expect(outcome).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(/it cannot be kept in \/proc\/known_hosts: /),
		});
	});

	test.each([
		['nobody is there', null],
		['whoever is there has no dialog for it', {...answering(), decidesHostKeys: false}],
	])('where %s it is refused with the fingerprint and the exact command', async (_name, asker) => {
		const server = await start({hostKeyIn: 'unknown'});
		expect(await knock(reach(server, asker))).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(
				`^host key of \\[127\\.0\\.0\\.1\\]:${server.port} is not in known_hosts \\(ED25519 SHA256:.*then keep it: ssh-keyscan -p ${server.port} -t ed25519 127\\.0\\.0\\.1 >>${server.directory}/known_hosts$`,
			),
		});
	});

	test('a changed and a revoked key are never asked about', async () => {
		const changed = await start({hostKeyIn: 'changed'});
		const asker = answering(['yes']);
		expect(await settled(reach(changed, asker))).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(
				/is changed: now ED25519 SHA256:\S+, known is ED25519 SHA256:\S+ \(\S+known_hosts:1\); nothing was sent/,
			),
		});
		const revoked = await start();
		writeFileSync(
			join(revoked.directory, 'known_hosts'),
			`@revoked * ${knownHosts(revoked).split(' ').slice(1).join(' ')}`,
		);
		expect(await settled(reach(revoked, asker))).toEqual({
			kind: 'denied',
			detail: expect.stringMatching(/is revoked: ED25519 SHA256:\S+ \(\S+known_hosts:1\); nothing was sent$/),
		});
		expect(asker.asked).toEqual([]);
	});
});
