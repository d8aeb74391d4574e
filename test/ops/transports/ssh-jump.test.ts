import {mkdtempSync, readFileSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, expect, test} from 'vitest';
import {type Lane, openLane} from '../../../src/ops/transports/lane.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from '../../../src/ops/transports/transport.ts';
import {OPERATOR, startSshServer, type TestServer, type TestServerOptions} from '../../support/ssh-server.ts';
import {until} from '../../support/until.ts';

const LIMITS = {limitMs: 8_000, capBytes: 100_000};
const servers: TestServer[] = [];
const transports: Transport[] = [];
const lanes: Lane[] = [];
afterEach(() => {
	for (const lane of lanes.splice(0)) lane.close();
	for (const transport of transports.splice(0)) transport.close();
	for (const server of servers.splice(0)) server.close();
});

async function start(options: TestServerOptions = {}) {
	const server = await startSshServer(options);
	servers.push(server);
	return server;
}

/** As people write it: aliases with their own address, user, key and known_hosts. */
const entry = (alias: string, server: TestServer, user: string, more = '') =>
	`Host ${alias}\n  HostName 127.0.0.1\n  Port ${server.port}\n  User ${user}\n  IdentityFile ${server.directory}/id\n  UserKnownHostsFile ${server.directory}/known_hosts\n${more}`;

function laneTo(destination: string, config: string) {
	const directory = mkdtempSync(join(tmpdir(), 'relight-jump-'));
	const sshConfigFile = join(directory, 'config');
	writeFileSync(sshConfigFile, config);
	const route = {
		ssh: destination,
		through: null,
		identityFile: null,
		knownHostsFile: null,
		sshConfigFile,
		environment: SYSTEM_ENVIRONMENT,
	};
	const transport = sshTransport(route, SYSTEM_ENVIRONMENT, OPERATOR);
	transports.push(transport);
	const lane = openLane(transport);
	lanes.push(lane);
	return lane;
}

const failureOf = async (lane: Lane, limitMs = LIMITS.limitMs) => {
	const outcome = await lane.request('echo x', {...LIMITS, limitMs});
	return outcome.ok ? 'an answer' : outcome.failure;
};

test('two hops lead to the host, each with its own user, key and known_hosts', async () => {
	const [one, two, gpu] = [await start({forwards: true}), await start({forwards: true}), await start()];
	const lane = laneTo(
		'gpu',
		entry('one', one, 'first') + entry('two', two, 'second') + entry('gpu', gpu, 'root', '  ProxyJump one,two\n'),
	);
	expect(await lane.request('echo "it\'s here"', LIMITS)).toMatchObject({ok: true, value: {stdout: "it's here\n"}});
	expect([one.users, two.users, gpu.users]).toEqual([['first'], ['second'], ['root']]);
	expect([one.sessions(), two.sessions(), gpu.sessions()]).toEqual([0, 0, 1]);
});

test('the first hop may lie behind another by its own entry, and closing ends the whole way', async () => {
	const [one, two, gpu] = [await start({forwards: true}), await start({forwards: true}), await start()];
	const lane = laneTo(
		'gpu',
		entry('one', one, 'first') +
			entry('two', two, 'second', '  ProxyJump one\n') +
			entry('gpu', gpu, 'root', '  ProxyJump two\n'),
	);
	expect(await lane.request('echo here', LIMITS)).toMatchObject({ok: true});
	expect([one.users, two.users, gpu.users]).toEqual([['first'], ['second'], ['root']]);
	transports[0]?.close();
	await until(() => [one, two, gpu].every(server => server.connections() === 0));
});

test('user and port in ProxyJump go before the entry', async () => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	const lane = laneTo(
		'gpu',
		entry('one', {...one, port: 1}, 'wrong') + entry('gpu', gpu, 'root', `  ProxyJump right@one:${one.port}\n`),
	);
	expect(await lane.request('echo here', LIMITS)).toMatchObject({ok: true});
	expect(one.users).toEqual(['right']);
});

test.each([
	['unknown', /^hop one: host key of \[127\.0\.0\.1\]:\d+ is not in known_hosts/],
	['changed', /^hop one: host key of \[127\.0\.0\.1\]:\d+ is changed/],
] as const)(
	'a hop whose host key is %s is refused, and the host behind it never hears of us',
	async (hostKeyIn, words) => {
		const [one, gpu] = [await start({forwards: true, hostKeyIn}), await start()];
		const lane = laneTo('gpu', entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n'));
		expect(await failureOf(lane)).toEqual({kind: 'denied', detail: expect.stringMatching(words)});
		expect([one.users, gpu.connections()]).toEqual([[], 0]);
	},
);

test('the host behind a hop is checked under its own name, with the way by hand that works for it', async () => {
	const [one, gpu] = [await start({forwards: true}), await start({hostKeyIn: 'unknown'})];
	const lane = laneTo(
		'gpu',
		entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n  HostKeyAlias the-gpu\n'),
	);
	const failure = await failureOf(lane);
	expect(failure).toEqual({
		kind: 'denied',
		detail: expect.stringMatching(
			/^host key of the-gpu is not in known_hosts \(ED25519 SHA256:.*ssh -J one -p \d+ -o .*known_hosts.* root@127\.0\.0\.1 true$/,
		),
	});
	// The other host's key under this name is a changed one.
	const key = readFileSync(join(one.directory, 'known_hosts'), 'utf8').split(' ').slice(1).join(' ');
	writeFileSync(join(gpu.directory, 'known_hosts'), `the-gpu ${key}`);
	const again = laneTo(
		'gpu',
		entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n  HostKeyAlias the-gpu\n'),
	);
	expect(await failureOf(again)).toMatchObject({detail: expect.stringMatching(/^host key of the-gpu is changed/)});
});

test.each([
	['itself', '  ProxyJump gpu\n', '', 'gpu -> gpu'],
	['one that leads back', '  ProxyJump one\n', '  ProxyJump gpu\n', 'gpu -> one -> gpu'],
])('a way through %s is a loop, by its names', async (_name, jump, back, names) => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	const lane = laneTo('gpu', entry('one', one, 'first', back) + entry('gpu', gpu, 'root', jump));
	expect(await failureOf(lane)).toEqual({kind: 'denied', detail: `ProxyJump goes round in a circle: ${names}`});
});

test('a hop that has no address is named', async () => {
	const gpu = await start();
	const lane = laneTo('gpu', entry('gpu', gpu, 'root', '  ProxyJump nowhere.invalid\n'));
	expect(await failureOf(lane)).toEqual({
		kind: 'unreachable',
		phase: 'name',
		detail: expect.stringMatching(/^hop nowhere\.invalid: getaddrinfo/),
	});
});

test('a hop that cannot reach the next one says so', async () => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	gpu.close();
	const lane = laneTo('gpu', entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n'));
	expect(await failureOf(lane)).toEqual({
		kind: 'unreachable',
		phase: 'connect',
		detail: expect.stringMatching(/^hop one: cannot reach 127\.0\.0\.1 port \d+ from there/),
	});
});

test('a ProxyCommand is refused in words, wherever it stands', async () => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	const command = '  ProxyCommand nc %h %p\n';
	const words =
		'is reached by a ProxyCommand (nc %h %p), which is not run here: use ProxyJump, or a route with `through`';
	expect(await failureOf(laneTo('gpu', entry('gpu', gpu, 'root', command)))).toEqual({
		kind: 'denied',
		detail: `gpu ${words}`,
	});
	const behind = entry('one', one, 'first', command) + entry('gpu', gpu, 'root', '  ProxyJump one\n');
	expect(await failureOf(laneTo('gpu', behind))).toEqual({kind: 'denied', detail: `one ${words}`});
});

test('the limit covers the whole way: a host that is mute behind its hop costs no more', async () => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	const config = entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n');
	expect(await laneTo('gpu', config).request('echo warm', LIMITS)).toMatchObject({ok: true});
	gpu.freeze();
	expect(await failureOf(laneTo('gpu', config), 1_500)).toEqual({
		kind: 'unreachable',
		phase: 'handshake',
		detail: 'gpu does not answer behind the hop before it in 1500 ms',
	});
	await until(() => one.connections() === 1);
});

test('when a hop goes, the connection behind it is lost at once', async () => {
	const [one, gpu] = [await start({forwards: true}), await start()];
	const lane = laneTo('gpu', entry('one', one, 'first') + entry('gpu', gpu, 'root', '  ProxyJump one\n'));
	expect(await lane.request('echo here', LIMITS)).toMatchObject({ok: true});
	const answer = lane.request('sleep 5', LIMITS);
	one.close();
	expect(await answer).toMatchObject({ok: false, failure: {kind: 'lost'}});
});
