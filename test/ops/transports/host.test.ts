import {afterEach, expect, test} from 'vitest';
import {type Host, type HostStatus, openHost} from '../../../src/ops/transports/host.ts';
import {localTransport} from '../../../src/ops/transports/local.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {SYSTEM_ENVIRONMENT} from '../../../src/ops/transports/transport.ts';
import {OPERATOR, startSshServer, type TestServer} from '../../support/ssh-server.ts';
import {until} from '../../support/until.ts';

const LIMITS = {limitMs: 2_000, capBytes: 100_000};
const servers: TestServer[] = [];
const hosts: Host[] = [];
afterEach(() => {
	for (const host of hosts.splice(0)) host.close();
	for (const server of servers.splice(0)) server.close();
});

async function twoRoutes() {
	const direct = await startSshServer();
	servers.push(direct);
	const told: HostStatus[] = [];
	const host = openHost({
		routes: [
			{transport: sshTransport(direct.route, SYSTEM_ENVIRONMENT, OPERATOR), outer: null},
			{transport: localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'}), outer: null},
		],
		onStatus: status => told.push(status),
		helloMs: 500,
		retryMs: 150,
	});
	hosts.push(host);
	return {direct, host, told};
}

const where = async (host: Host) => {
	const outcome = await host.ask('files', 'echo "$HOME"', LIMITS);
	return outcome.ok ? outcome.value.stdout.trim() : outcome.failure.kind;
};

test('the first route that works is used', async () => {
	const {host} = await twoRoutes();
	expect(await where(host)).toBe('/root');
	expect(host.status).toMatchObject({state: 'up', passedOver: []});
});

test('a route that freezes is passed over with its reason, and taken back when it answers again', async () => {
	const {host, direct} = await twoRoutes();
	expect(await where(host)).toBe('/root');
	direct.mood = 'no sessions';
	// The lane that is open goes on; a new one finds the frozen server.
	await host.ask('mounts', 'echo x', {...LIMITS, limitMs: 300});
	await until(() => host.status.label === 'local');
	expect(await where(host)).toBe('/by-the-other-way');
	expect(host.status.passedOver.map(({label, reason}) => ({label, reason}))).toEqual([
		{
			label: `ssh ${direct.route.ssh}`,
			reason: 'unreachable (channel): connected, but it opens no session: sshd is frozen',
		},
	]);
	direct.mood = 'well';
	await until(() => host.status.label !== 'local');
	expect(host.status.passedOver).toEqual([]);
	expect(await where(host)).toBe('/root');
});

test('with no route at all every look says so at once, and the host is unreachable, not stopped', async () => {
	const {host, direct} = await twoRoutes();
	host.close();
	const alone = openHost({
		routes: [{transport: sshTransport(direct.route, SYSTEM_ENVIRONMENT, OPERATOR), outer: null}],
		onStatus: () => {},
		helloMs: 400,
		retryMs: 10_000,
	});
	hosts.push(alone);
	direct.close();
	expect(await where(alone)).toBe('unreachable');
	expect(alone.status.state).toBe('down');
	expect(alone.status.passedOver[0]?.reason).toMatch(/refused/);
});

test('an act whose route is lost under it is not sent again by another way', async () => {
	const {host, direct} = await twoRoutes();
	await where(host);
	direct.mood = 'drop on exec';
	const outcome = await host.ask('act', 'echo done', LIMITS);
	expect(!outcome.ok && outcome.failure.kind).toMatch(/^(lost|unreachable)$/);
	await until(() => host.status.label === 'local');
});
