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
