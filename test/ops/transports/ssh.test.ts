import {readFileSync} from 'node:fs';
import {createServer} from 'node:net';
import {join} from 'node:path';
import {PassThrough} from 'node:stream';
import type {ClientChannel} from 'ssh2';
import {afterEach, describe, expect, test} from 'vitest';
import {judge} from '../../../src/ops/act.ts';
import {type Lane, openLane} from '../../../src/ops/transports/lane.ts';
import {sshTransport, toChannel} from '../../../src/ops/transports/ssh.ts';
import {readError} from '../../../src/ops/transports/ssh-login.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from '../../../src/ops/transports/transport.ts';
import {OPERATOR, startSshServer, type TestServer} from '../../support/ssh-server.ts';

const LIMITS = {limitMs: 5_000, capBytes: 4 * 1024 * 1024};
const servers: TestServer[] = [];
const transports: Transport[] = [];
const lanes: Lane[] = [];

afterEach(() => {
	for (const lane of lanes.splice(0)) lane.close();
	for (const transport of transports.splice(0)) transport.close();
	for (const server of servers.splice(0)) server.close();
});

async function connect(options: Parameters<typeof startSshServer>[0] = {}) {
	const server = await startSshServer(options);
	servers.push(server);
	const transport = sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR);
	transports.push(transport);
	const lane = openLane(transport);
	lanes.push(lane);
	return {server, transport, lane};
}

test('a lane over ssh answers like a local one', async () => {
	const {lane} = await connect();
	const outcome = await lane.request(`echo "$LC_ALL \${MOTD-clean}"; echo 'it'"'"'s' >&2; exit 3`, LIMITS);
	expect(
		outcome.ok && {status: outcome.value.status, stdout: outcome.value.stdout, stderr: outcome.value.stderr},
	).toEqual({status: 3, stdout: 'C clean\n', stderr: "it's\n"});
});

test('a megabyte comes whole over ssh', async () => {
	const {lane} = await connect();
	const outcome = await lane.request('head -c 1000000 /dev/zero', LIMITS);
	expect(outcome.ok && outcome.value.bytes.equals(Buffer.alloc(1_000_000))).toBe(true);
});

test('an unknown host key is refused with its fingerprint and nothing is sent', async () => {
	const {lane, server} = await connect({hostKeyIn: 'unknown'});
	const outcome = await lane.request('echo x', LIMITS);
	expect(outcome).toEqual({
		ok: false,
		failure: {
			kind: 'denied',
			detail: expect.stringMatching(/^host key of \[127\.0\.0\.1\]:\d+ is not in known_hosts \(ED25519 SHA256:/),
		},
	});
	expect(server.sessions()).toBe(0);
});

test('a changed host key is refused', async () => {
	const {lane} = await connect({hostKeyIn: 'changed'});
	const outcome = await lane.request('echo x', LIMITS);
	expect(!outcome.ok && outcome.failure.kind === 'denied' && outcome.failure.detail).toMatch(
		/is changed: now ED25519 SHA256:\S+, known is ED25519 SHA256:\S+ \(\S+known_hosts:1\); nothing was sent/,
	);
});

test('a far end that never opens the session costs its limit, which started before the channel', async () => {
	const {lane, server} = await connect();
	await lane.request('echo warm', LIMITS);
	server.mood = 'no sessions';
	const second = openLane(transports[0]!);
	lanes.push(second);
	const outcome = await second.request('echo x', {...LIMITS, limitMs: 600});
	expect(!outcome.ok && outcome.failure).toMatchObject({kind: 'unreachable', phase: 'channel'});
	expect(await lane.request('echo the open lane goes on', LIMITS)).toMatchObject({ok: true});
});

test('a connection that drops under a command is an unknown outcome', async () => {
	const {lane, server} = await connect();
	await lane.request('echo warm', LIMITS);
	server.mood = 'drop on exec';
	const second = openLane(transports[0]!);
	lanes.push(second);
	const outcome = await second.request('touch /nonexistent/x', LIMITS);
	expect(!outcome.ok && outcome.failure.kind).toBe('lost');
});

test('nobody listens: refused, told apart from a port that is open and silent', async () => {
	const {server, transport} = await connect();
	server.close();
	const refused = await transport.open(['true'], 2_000);
	expect(!refused.ok && refused.failure).toMatchObject({kind: 'unreachable', phase: 'refused'});

	const mute = createServer(() => {});
	await new Promise<void>(resolve => mute.listen(0, '127.0.0.1', resolve));
	const {port} = mute.address() as {port: number};
	const silent = sshTransport({...server.route, ssh: `tester@127.0.0.1:${port}`}, SYSTEM_ENVIRONMENT, OPERATOR);
	transports.push(silent);
	const outcome = await silent.open(['true'], 700);
	expect(!outcome.ok && outcome.failure).toMatchObject({kind: 'unreachable', phase: 'handshake'});
	mute.close();
});

test('no more than eight channels, however many are asked for', async () => {
	const {transport, server} = await connect();
	const opened = await Promise.all(Array.from({length: 12}, () => transport.open(['sleep', '5'], 3_000)));
	expect(opened.filter(each => each.ok).length).toBe(8);
	expect(server.sessions()).toBe(8);
	for (const each of opened) if (each.ok) each.value.abandon();
});

/** Case: three endings that look alike to careless callers. */
test.each([
	['a success', 'exit 0', {kind: 'exit', code: 0}],
	['a failure', 'exit 3', {kind: 'exit', code: 3}],
	['a death by signal', 'kill -9 $$', {kind: 'signal', signal: 'SIGKILL'}],
])('%s is told apart', async (_name, script, end) => {
	const {transport} = await connect();
	const opened = await transport.open(['/bin/sh', '-c', script], 3_000);
	if (!opened.ok) throw new Error(opened.failure.kind);
	opened.value.stdout.resume();
	expect(await opened.value.ended).toEqual(end);
});

test('a connection that ends without a status is lost, never a success', async () => {
	const {transport, server} = await connect();
	const opened = await transport.open(['/bin/sh', '-c', 'sleep 5'], 3_000);
	if (!opened.ok) throw new Error(opened.failure.kind);
	opened.value.stdout.resume();
	server.close();
	expect(await opened.value.ended).toEqual({kind: 'lost', detail: 'no exit status came'});
});

test.each([
	[
		{level: 'client-socket', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED'},
		{kind: 'unreachable', phase: 'refused'},
	],
	[
		{level: 'client-timeout', message: 'Keepalive timeout'},
		{kind: 'unreachable', phase: 'keepalive'},
	],
	[
		{level: 'client-timeout', message: 'Timed out while waiting for handshake'},
		{kind: 'unreachable', phase: 'handshake'},
	],
	[{level: 'client-authentication', message: 'All configured authentication methods failed'}, {kind: 'denied'}],
	[
		{code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND gpu'},
		{kind: 'unreachable', phase: 'name'},
	],
	[
		{level: 'client-socket', code: 'EHOSTUNREACH', message: 'connect EHOSTUNREACH'},
		{kind: 'unreachable', phase: 'connect'},
	],
])('the words of an error say how far the way was open: %o', (error, failure) => {
	expect(readError(Object.assign(new Error(error.message), error))).toMatchObject(failure);
});

/** Case: endings that look alike to careless callers; the arguments are as the client gives them. */
describe('an ending as the client tells it', () => {
	type Ending = {exit: unknown[] | null; close: unknown[]; stdout?: string; stderr?: string};
	const endings: Record<string, Ending> = JSON.parse(
		readFileSync(join(import.meta.dirname, '../../fixtures/ssh/ended-without-status.json'), 'utf8'),
	);
	const replay = async (name: string) => {
		const {exit, close} = endings[name] as Ending;
		const stream = Object.assign(new PassThrough(), {stderr: new PassThrough(), close() {}});
		const channel = toChannel(stream as unknown as ClientChannel, () => {});
		if (exit) stream.emit('exit', ...exit);
		stream.emit('close', ...close);
		return channel.ended;
	};

	test.each([
		['a', {kind: 'exit', code: 0}],
		['b', {kind: 'exit', code: 3}],
		['c', {kind: 'signal', signal: 'SIGKILL'}],
		['d', {kind: 'lost', detail: 'no exit status came'}],
		['e', {kind: 'exit', code: 137}],
		['f', {kind: 'exit', code: 255}],
		['g', {kind: 'exit', code: 124}],
	])('%s', async (name, end) => {
		expect(await replay(name)).toEqual(end);
	});

	test.each([
		[0, '', {kind: 'ok', text: ''}],
		[3, 'no', {kind: 'failed', words: 'exit 3: no', text: 'no'}],
		[137, '', {kind: 'failed', words: 'exit 137 (killed; often out of memory: see the kernel log)', text: ''}],
		[
			255,
			'Connection timed out',
			{
				kind: 'failed',
				words: 'exit 255: Connection timed out (or the inner hop failed, not the command: look before repeating)',
				text: 'Connection timed out',
			},
		],
		[124, '', {kind: 'failed', words: 'exit 124 (its own time limit was reached)', text: ''}],
	])('status %i in words', (status, stderr, result) => {
		expect(judge({ok: true, value: {status, stdout: '', stderr, bytes: Buffer.alloc(0)}})).toEqual(result);
	});

	test('a lost connection is unknown, and a channel that never opened is not', () => {
		expect(judge({ok: false, failure: {kind: 'lost', detail: 'no exit status came'}})).toMatchObject({kind: 'unknown'});
		expect(judge({ok: false, failure: {kind: 'timeout', afterMs: 1_000}})).toMatchObject({kind: 'unknown'});
		expect(judge({ok: false, failure: {kind: 'unreachable', phase: 'refused', detail: 'x'}})).toMatchObject({
			kind: 'failed',
		});
	});
});

/** Case: the far machine froze with the connection up; without keepalive nothing is ever heard again. */
test('three keepalives without an answer end a frozen connection, and the next request makes a new one', async () => {
	const server = await startSshServer();
	servers.push(server);
	const transport = sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR, {keepaliveMs: 200});
	transports.push(transport);
	const lane = openLane(transport);
	lanes.push(lane);
	expect(await lane.request('echo well', LIMITS)).toMatchObject({ok: true});
	server.pause();
	const outcome = await lane.request('echo x', LIMITS);
	expect(!outcome.ok && outcome.failure.kind).toBe('lost');
	server.resume();
	const second = openLane(transport);
	lanes.push(second);
	expect(await second.request('echo again', LIMITS)).toMatchObject({ok: true});
});
