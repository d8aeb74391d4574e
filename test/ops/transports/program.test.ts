import {createHash, randomBytes} from 'node:crypto';
import {afterEach, expect, test} from 'vitest';
import {localTransport} from '../../../src/ops/transports/local.ts';
import {finish} from '../../../src/ops/transports/program.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {SYSTEM_ENVIRONMENT, type Transport} from '../../../src/ops/transports/transport.ts';
import {OPERATOR, startSshServer, type TestServer} from '../../support/ssh-server.ts';

const servers: TestServer[] = [];
afterEach(() => {
	for (const server of servers.splice(0)) server.close();
});

const local = async () => localTransport(SYSTEM_ENVIRONMENT);
const ssh = async () => {
	const server = await startSshServer();
	servers.push(server);
	return sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR);
};

async function run(transport: Transport, script: string, input: string | null = null, limitMs = 10_000) {
	const opened = await transport.open(['/bin/sh', '-c', script], limitMs);
	if (!opened.ok) throw new Error(opened.failure.kind);
	const outcome = await finish(opened.value, input === null ? null : Buffer.from(input), limitMs);
	transport.close();
	if (!outcome.ok) return outcome.failure;
	const {status, stdout, stderr} = outcome.value;
	return {status, stdout, stderr};
}

test.each([
	['local', local],
	['ssh', ssh],
])('over %s: input goes in, status and both outputs come back whole', async (_name, route) => {
	expect(await run(await route(), 'cat; echo no >&2; exit 3', 'yes')).toEqual({
		status: 3,
		stdout: 'yes',
		stderr: 'no\n',
	});
	const long = await run(await route(), 'head -c 3000000 /dev/zero');
	expect('stdout' in long && long.stdout?.length).toBe(3_000_000);
});

/** What a program makes of a long input, and what was told of that on the way. */
async function runTold(transport: Transport, script: string, input: Buffer, pieceBytes?: number) {
	const opened = await transport.open(['/bin/sh', '-c', script], 10_000);
	if (!opened.ok) throw new Error(opened.failure.kind);
	const told: number[] = [];
	const outcome = await finish(opened.value, input, 10_000, {pieceBytes, onSent: bytes => void told.push(bytes)});
	transport.close();
	return {told, said: outcome.ok ? outcome.value.stdout : outcome.failure.kind};
}

const INPUT = randomBytes(5_000_001);
const PIECE = 100_000;
const TAKES = `t() { n=0; while [ $n -lt 51 ]; do head -c ${PIECE}; printf '\\006' >&3; n=$((n+1)); done; }; { t | sha256sum; } 3>&1`;

test.each([
	['local', 'at once', local, 'sha256sum', undefined],
	['ssh', 'at once', ssh, 'sha256sum', undefined],
	['local', 'in pieces', local, TAKES, PIECE],
	['ssh', 'in pieces', ssh, TAKES, PIECE],
])(
	'over %s, %s: a long input arrives whole, and it is told how far it has come',
	async (_name, _way, route, script, piece) => {
		const {told, said} = await runTold(await route(), script, INPUT, piece);
		expect(said).toBe(`${createHash('sha256').update(INPUT).digest('hex')}  -\n`);
		expect(told.length).toBeGreaterThan(10);
		expect(told).toEqual([...told].sort((one, other) => one - other));
		expect(told.at(-1)).toBe(INPUT.length);
	},
);

test.each([
	['local', 'at once', local, undefined],
	['ssh', 'at once', ssh, undefined],
	['local', 'in pieces', local, PIECE],
	['ssh', 'in pieces', ssh, PIECE],
])(
	'over %s, %s: what wants none of its input answers, and most of that is not sent',
	async (_name, _way, route, piece) => {
		const {told, said} = await runTold(await route(), 'echo there', Buffer.alloc(50_000_000), piece);
		expect(said).toBe('there\n');
		expect(told.at(-1)).toBeLessThan(10_000_000);
	},
);

test.each([
	['local', local],
	['ssh', ssh],
])('over %s: of what is not taken no more than two pieces are under way', async (_name, route) => {
	const {said} = await runTold(await route(), 'timeout 1 cat | wc -c', INPUT, PIECE);
	expect(said).toBe(`${2 * PIECE}\n`);
});

test.each([
	['local', local],
	['ssh', ssh],
])('over %s: an empty input ends at once', async (_name, route) => {
	expect(await runTold(await route(), 'wc -c', Buffer.alloc(0), PIECE)).toMatchObject({said: '0\n'});
});

test.each([
	['local', local],
	['ssh', ssh],
])('over %s: last words that come after the end are waited for', async (_name, route) => {
	expect(await run(await route(), '(sleep 0.2; echo late) & exit 0')).toEqual({
		status: 0,
		stdout: 'late\n',
		stderr: '',
	});
});

/** Case: a grandchild holds the pipe. */
test('a child that keeps the pipe does not keep the answer', async () => {
	expect(await run(await local(), 'sleep 30 & echo started')).toEqual({status: 0, stdout: 'started\n', stderr: ''});
});

test('a program over its limit, and one that was killed, are no answers', async () => {
	expect(await run(await local(), 'sleep 30', null, 200)).toEqual({kind: 'timeout', afterMs: 200});
	expect(await run(await local(), 'kill -9 $$')).toEqual({kind: 'killed', signal: 'SIGKILL'});
});
