import {setTimeout as sleep} from 'node:timers/promises';
import {afterEach, describe, expect, it, test} from 'vitest';
import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import {bad, type Outcome} from '../../../src/ops/outcome.ts';
import type {RouteConfig} from '../../../src/ops/target.ts';
import {openDesk} from '../../../src/ops/transports/desk.ts';
import type {HostStatus} from '../../../src/ops/transports/failover.ts';
import {type Host, openHost} from '../../../src/ops/transports/host.ts';
import {localTransport} from '../../../src/ops/transports/local.ts';
import {hostOf} from '../../../src/ops/transports/routes.ts';
import {sshTransport} from '../../../src/ops/transports/ssh.ts';
import {type Channel, SYSTEM_ENVIRONMENT, type Transport} from '../../../src/ops/transports/transport.ts';
import {answering} from '../../support/asker.ts';
import {OPERATOR, startSshServer, type TestServer, type TestServerOptions} from '../../support/ssh-server.ts';
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
		helloMs: 2_000,
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

test('a key that was skipped is asked for again when the operator reconnects, and never by itself', async () => {
	const server = await startSshServer({passphrase: 'open sesame'});
	servers.push(server);
	const asker = answering(null, null, ['open sesame']);
	const local = {...LOCAL_TARGET.routes[0], environment: {...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'}};
	const target = {...LOCAL_TARGET, routes: [server.route, local as RouteConfig]};
	const host = hostOf(target, OPERATOR, {onStatus() {}, asker, retryMs: 50});
	hosts.push(host);
	await host.settle();
	expect(await where(host)).toBe('/by-the-other-way');
	await new Promise(resolve => setTimeout(resolve, 600));
	expect(asker.asked).toHaveLength(1);
	await host.reconnect();
	expect(await where(host)).toBe('/by-the-other-way');
	await new Promise(resolve => setTimeout(resolve, 600));
	expect(asker.asked).toHaveLength(2);
	await host.reconnect();
	expect(asker.asked).toHaveLength(3);
	expect(await where(host)).toBe('/root');
	expect(host.status).toMatchObject({state: 'up', passedOver: []});
});

test('reconnecting while a login is under way does not end with that login: it may be past what was skipped', async () => {
	const denied = bad({kind: 'denied', detail: 'no offered key was accepted'});
	const works = localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-better-way'});
	let login: Promise<Outcome<Channel>> | null = Promise.resolve(denied);
	let fail: () => void = () => {};
	let opened = 0;
	const better: Transport = {
		...works,
		label: 'better',
		open(...words) {
			opened++;
			return login ?? works.open(...words);
		},
	};
	const worse = localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'});
	const routes = [better, worse].map(transport => ({transport, outer: null}));
	const host = openHost({routes, onStatus() {}, retryMs: 100});
	hosts.push(host);
	expect(await where(host)).toBe('/by-the-other-way');
	login = new Promise(resolve => {
		fail = () => {
			login = null;
			resolve(denied);
		};
	});
	await until(() => opened === 2);
	const reconnected = host.reconnect();
	setTimeout(fail, 50);
	await reconnected;
	expect(await where(host)).toBe('/by-the-better-way');
});

test('with no route at all, reconnecting does not wait for the rest that a failed search takes', async () => {
	const server = await startSshServer({passphrase: 'open sesame'});
	servers.push(server);
	const asker = answering(null, ['open sesame']);
	const host = hostOf({...LOCAL_TARGET, routes: [server.route]}, OPERATOR, {onStatus() {}, asker});
	hosts.push(host);
	await host.settle();
	expect(host.status.state).toBe('down');
	await host.reconnect();
	expect(host.status.state).toBe('up');
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

test('a greeting that fails late does not take a route with it that has been taken back since', async () => {
	const better = localTransport({...SYSTEM_ENVIRONMENT, home: '/root'});
	let first = true;
	let closed = 0;
	const open: typeof better.open = async (...words) => {
		if (!first) return better.open(...words);
		first = false;
		await sleep(1_000);
		return bad({kind: 'unreachable', phase: 'connect', detail: 'late'});
	};
	const worse = localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'});
	const routes = [{...better, label: 'better', open, close: () => closed++}, worse];
	const options = {onStatus: () => {}, headStartMs: 20, retryMs: 30};
	const host = openHost({routes: routes.map(transport => ({transport, outer: null})), ...options});
	hosts.push(host);
	expect(await where(host)).toBe('/by-the-other-way');
	await until(() => host.status.label === 'better');
	await sleep(1_200);
	expect([closed, host.status.passedOver, await where(host)]).toEqual([0, [], '/root']);
});

describe('a better route that answers again', () => {
	const begin = async (asked: readonly ('files' | 'act')[]) => {
		const better = localTransport({...SYSTEM_ENVIRONMENT, home: '/root'});
		let answers = false;
		const open: typeof better.open = (...args) =>
			answers ? better.open(...args) : Promise.resolve(bad({kind: 'unreachable', phase: 'connect', detail: 'frozen'}));
		const worse = localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'});
		const routes = [{...better, label: 'better', open}, worse].map(transport => ({transport, outer: null}));
		const host = openHost({routes, onStatus: () => {}, retryMs: 100});
		hosts.push(host);
		expect(await where(host)).toBe('/by-the-other-way');
		const outcomes = asked.map(async lane => {
			const script = '[ "$HOME" = /root ] || sleep 3; echo "$HOME"';
			const outcome = await host.ask(lane, script, {...LIMITS, limitMs: 10_000});
			return outcome.ok ? outcome.value.stdout.trim() : outcome.failure.kind;
		});
		answers = true;
		return {host, answers: Promise.all(outcomes)};
	};

	it('takes looks with it: what was under way or waited is asked again there', async () => {
		const {answers} = await begin(['files', 'files']);
		expect(await answers).toEqual(['/root', '/root']);
	});

	it('waits for an act to end', async () => {
		const {host, answers} = await begin(['act', 'files']);
		expect(await answers).toEqual(['/by-the-other-way', '/by-the-other-way']);
		await until(() => host.status.label !== 'local');
		expect(await where(host)).toBe('/root');
	});
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

/** Both over SSH or locally, with an operator who is asked for what only they know. */
async function asking(routes: readonly (TestServerOptions | 'local')[], asker: ReturnType<typeof answering>) {
	const desk = openDesk(asker);
	const made = await Promise.all(
		routes.map(async options => {
			if (options === 'local') return {server: null, transport: localTransport(SYSTEM_ENVIRONMENT)};
			const server = await startSshServer(options);
			servers.push(server);
			return {server, transport: sshTransport(server.route, SYSTEM_ENVIRONMENT, OPERATOR, {desk})};
		}),
	);
	const host = openHost({
		routes: made.map(({transport}) => ({transport, outer: null})),
		onStatus: () => {},
		helloMs: 5_000,
		headStartMs: 5_000,
		retryMs: 60_000,
	});
	hosts.push(host);
	return {host, labels: made.map(({transport}) => transport.label)};
}

test('a route that asks the operator does not keep the next one waiting, and is taken as soon as it is answered', async () => {
	const asker = answering();
	const {host, labels} = await asking([{hostKeyIn: 'unknown'}, 'local'], asker);
	expect(await where(host)).toBe('/root');
	expect(host.status).toMatchObject({
		state: 'up',
		label: 'local',
		passedOver: [
			{label: labels[0], reason: expect.stringMatching(/^waits for you: host key of \[127\.0\.0\.1\]:\d+ \(ED/)},
		],
	});
	asker.answer(['yes']);
	await until(() => host.status.label === labels[0]);
	expect(host.status.passedOver).toEqual([]);
	expect(await where(host)).toBe('/root');
	expect(asker.asked).toHaveLength(1);
});

test('with no other route every look says so at once, and the host comes up when it is answered', async () => {
	const asker = answering();
	const {host} = await asking([{passphrase: 'open sesame'}], asker);
	expect([await where(host), host.status.state]).toEqual(['unreachable', 'down']);
	expect(host.status.passedOver[0]?.reason).toMatch(/^waits for you: passphrase of/);
	asker.answer(['open sesame']);
	await until(() => host.status.state === 'up');
	expect(await where(host)).toBe('/root');
});

test("a server's own prompts stay open on their connection until they are answered", async () => {
	const asker = answering();
	const {host} = await asking(
		[
			{
				authenticate(context) {
					if (context.method !== 'keyboard-interactive') return context.reject(['keyboard-interactive']);
					context.prompt([{prompt: 'Code: ', echo: false}], ([code]) =>
						code === '123' ? context.accept() : context.reject(['keyboard-interactive']),
					);
				},
			},
			'local',
		],
		asker,
	);
	expect(await where(host)).toBe('/root');
	asker.answer(['123']);
	await until(() => host.status.label !== 'local');
	expect([asker.asked.length, asker.withdrawn.length]).toEqual([1, 0]);
});

test('settled is when every question is answered, one after another', async () => {
	const asker = answering(['yes'], ['wrong'], ['open sesame']);
	const {host} = await asking([{hostKeyIn: 'unknown', passphrase: 'open sesame'}], asker);
	await host.settle();
	expect([host.status.state, asker.asked.map(each => each.kind)]).toEqual([
		'up',
		['host-key', 'passphrase', 'passphrase'],
	]);
});

test('settled with every question skipped is down, with the reason', async () => {
	const asker = answering(null);
	const {host} = await asking([{hostKeyIn: 'unknown'}], asker);
	await host.settle();
	expect([host.status.state, host.status.passedOver[0]?.reason]).toEqual([
		'down',
		expect.stringMatching(/^denied: .*: it was not accepted$/),
	]);
});

const LANES = ['driver', 'processes', 'mounts', 'services', 'files', 'command-lines', 'act'] as const;

test.each([1, 2, 3])('where the server opens %i sessions all lanes answer, and a file is sent', async maxSessions => {
	const {host} = await asking([{maxSessions}], answering());
	for (let turn = 0; turn < 2; turn++) {
		const answers = await Promise.all(LANES.map(lane => host.ask(lane, `echo ${lane}`, LIMITS)));
		expect(answers.map(each => (each.ok ? each.value.stdout.trim() : each.failure))).toEqual(LANES);
	}
	expect(await host.send('cat; echo " sent"', Buffer.from('it is'), 5_000)).toMatchObject({
		ok: true,
		value: {stdout: 'it is sent\n'},
	});
	expect(await host.ask('act', 'echo after', LIMITS)).toMatchObject({ok: true});
	expect(host.status).toMatchObject({state: 'up', passedOver: []});
});

test('an act whose route is lost under it is not sent again by another way', async () => {
	const {host, direct} = await twoRoutes();
	await where(host);
	direct.mood = 'drop on exec';
	const outcome = await host.ask('act', 'echo done', LIMITS);
	expect(!outcome.ok && outcome.failure.kind).toMatch(/^(lost|unreachable)$/);
	await until(() => host.status.label === 'local');
});

describe('an act for which a route opens no channel was not sent, and goes by another way', () => {
	const silence = async (limitMs: number) => {
		await sleep(limitMs, null, {ref: false});
		return bad({kind: 'unreachable', phase: 'channel', detail: 'no channel'});
	};

	/** The better route answers until it is muted; then it opens nothing, without a word. */
	async function begin() {
		const better = localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-better-way'});
		let mute = false;
		const host = openHost({
			routes: [
				{
					transport: {...better, open: (...words) => (mute ? silence(words[1]) : better.open(...words))},
					outer: null,
				},
				{transport: localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'}), outer: null},
			],
			onStatus() {},
			helloMs: 300,
			retryMs: 60_000,
		});
		hosts.push(host);
		expect(await where(host)).toBe('/by-the-better-way');
		mute = true;
		const act = async (limitMs: number) => {
			const outcome = await host.ask('act', 'echo "$HOME"', {...LIMITS, limitMs});
			return outcome.ok ? outcome.value.stdout.trim() : outcome.failure.kind;
		};
		return {host, act};
	}

	it('also when nothing but the act has noticed', async () => {
		const {act} = await begin();
		expect(await act(400)).toBe('/by-the-other-way');
	});

	it('and so does a file', async () => {
		const {host} = await begin();
		expect(await host.send('cat; echo "$HOME"', Buffer.from('a file '), 400)).toMatchObject({
			value: {status: 0, stdout: 'a file /by-the-other-way\n'},
		});
	});

	it('and at once when the route is given up meanwhile', async () => {
		const {host, act} = await begin();
		const begun = Date.now();
		const acted = act(60_000);
		await host.ask('services', 'true', {...LIMITS, limitMs: 200});
		expect(await acted).toBe('/by-the-other-way');
		expect(Date.now() - begun).toBeLessThan(30_000);
	});
});
