import {execFileSync, spawn} from 'node:child_process';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {afterEach, expect} from 'vitest';
import {act} from '../../src/ops/act.ts';
import type {LaneName} from '../../src/ops/probes/probe.ts';
import type {RouteConfig} from '../../src/ops/target.ts';
import {openDesk} from '../../src/ops/transports/desk.ts';
import {type Host, openHost} from '../../src/ops/transports/host.ts';
import {localTransport} from '../../src/ops/transports/local.ts';
import type {Asker} from '../../src/ops/transports/question.ts';
import {sshTransport} from '../../src/ops/transports/ssh.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';
import {answering} from '../support/asker.ts';
import {OPERATOR} from '../support/ssh-server.ts';
import {until} from '../support/until.ts';
import {lab} from './needs.ts';
import {slowLine} from './slow-line.ts';
import {canRunSshd, type Sshd, type SshdOptions, send, startSshd} from './sshd.ts';

const LIMITS = {limitMs: 5_000, capBytes: 100_000};
const LANES: readonly LaneName[] = ['driver', 'processes', 'mounts', 'services', 'files', 'command-lines', 'act'];
const servers: Sshd[] = [];
const hosts: Host[] = [];
afterEach(async () => {
	for (const host of hosts.splice(0)) host.close();
	await Promise.all(servers.splice(0).map(server => server.close()));
});

async function start(options: SshdOptions = {}): Promise<Sshd> {
	const server = await startSshd(options);
	servers.push(server);
	return server;
}

function hostOn(
	route: RouteConfig,
	{
		asker = null,
		second = false,
		agent = null,
		keepaliveMs = 300,
	}: {asker?: Asker | null; second?: boolean; agent?: string | null; keepaliveMs?: number} = {},
): Host {
	const transport = sshTransport(route, SYSTEM_ENVIRONMENT, {...OPERATOR, agent}, {desk: openDesk(asker), keepaliveMs});
	const spare = {transport: localTransport({...SYSTEM_ENVIRONMENT, home: '/by-the-other-way'}), outer: null};
	const host = openHost({
		routes: [{transport, outer: null}, ...(second ? [spare] : [])],
		onStatus: () => {},
		helloMs: 3_000,
		headStartMs: 2_500,
		retryMs: 500,
	});
	hosts.push(host);
	return host;
}

const say = async (host: Host, lane: LaneName = 'files') => {
	const outcome = await host.ask(lane, 'echo "$HOME"', LIMITS);
	return outcome.ok ? outcome.value.stdout.trim() : outcome.failure.kind;
};

const reasonOf = (host: Host) => host.status.passedOver[0]?.reason;

lab(
	'a listener that is frozen is passed over as an open port without a session, and taken back when it goes on',
	canRunSshd,
	async () => {
		const server = await start();
		send(server.pid, 'SIGSTOP');
		const host = hostOn(server.route, {second: true});
		expect(await say(host)).toBe('/by-the-other-way');
		await until(() => reasonOf(host) !== undefined);
		expect(reasonOf(host)).toMatch(/^unreachable \(handshake\): port answers, no SSH session in \d+ ms$/);
		send(server.pid, 'SIGCONT');
		await until(() => host.status.label.startsWith('ssh'), 30_000);
		expect(await say(host)).toBe('/root');
	},
);

lab('a session that freezes under a look is lost, and the next look goes another way', canRunSshd, async () => {
	const server = await start();
	const host = hostOn(server.route, {second: true});
	expect(await say(host)).toBe('/root');
	const [session] = server.sessions();
	send(session as number, 'SIGSTOP');
	const outcome = await host.ask('files', 'echo x', LIMITS);
	expect(!outcome.ok && outcome.failure.kind).toMatch(/^(lost|timeout)$/);
	await until(() => host.status.passedOver.length > 0 || host.status.label.startsWith('ssh'));
	// The listener is well, so the same route makes a new connection.
	await until(async () => (await say(host)) === '/root');
	expect(server.sessions()).not.toEqual([session]);
});

for (const most of [1, 2]) {
	lab(`MaxSessions ${most}: every lane answers, a file is sent, and no route is given up`, canRunSshd, async () => {
		const server = await start({lines: [`MaxSessions ${most}`]});
		const host = hostOn(server.route);
		for (let turn = 0; turn < 3; turn++) {
			const answers = await Promise.all(LANES.map(lane => host.ask(lane, `echo ${lane}`, LIMITS)));
			expect(answers.map(each => (each.ok ? each.value.stdout.trim() : each.failure))).toEqual(LANES);
		}
		const sent = await host.send('cat', Buffer.from('a file'), 5_000);
		expect(sent).toMatchObject({ok: true, value: {stdout: 'a file'}});
		expect(await say(host, 'act')).toBe('/root');
		expect(host.status).toMatchObject({state: 'up', passedOver: []});
		expect(server.sessions()).toHaveLength(1);
	});
}

lab('a large file goes over a slow line, and looks are answered beside it', canRunSshd, async () => {
	const line = await slowLine(await start(), 500_000);
	const host = hostOn(line.route, {keepaliveMs: 1_000});
	expect(await say(host)).toBe('/root');
	const answers: string[] = [];
	let over = false;
	const looking = (async () => {
		while (!over) answers.push(await say(host));
	})();
	const pieceBytes = 131_072;
	const take = `n=0; while [ $n -lt 20 ]; do head -c ${pieceBytes} | wc -c; printf '\\006'; n=$((n+1)); done`;
	const sent = await host.send(take, Buffer.alloc(20 * pieceBytes), 60_000, {pieceBytes});
	over = true;
	await looking;
	line.close();
	expect(sent).toMatchObject({ok: true, value: {status: 0, stdout: `${pieceBytes}\n`.repeat(20)}});
	expect(answers.length).toBeGreaterThan(5);
	expect([...new Set(answers)]).toEqual(['/root']);
	expect(host.status).toMatchObject({state: 'up', passedOver: []});
});

lab(
	'a changed host key is refused with both fingerprints and the line, while the other route goes on',
	canRunSshd,
	async () => {
		const server = await start();
		const before = hostOn(server.route);
		expect(await say(before)).toBe('/root');
		const old = fingerprintOf(server);
		await server.changeHostKey();
		const asker = answering(['yes']);
		const host = hostOn(server.route, {asker, second: true});
		expect(await say(host)).toBe('/by-the-other-way');
		await until(() => reasonOf(host) !== undefined);
		expect(reasonOf(host)).toContain(
			`denied: host key of [127.0.0.1]:${server.port} is changed: now ED25519 ${fingerprintOf(server)}, known is ED25519 ${old} (${server.directory}/known_hosts:1); nothing was sent`,
		);
		expect(asker.asked).toEqual([]);
	},
);

const fingerprintOf = (server: Sshd): string =>
	execFileSync('ssh-keygen', ['-lf', join(server.directory, 'host.pub')])
		.toString()
		.split(' ')[1] ?? '';

for (const hash of ['no', 'yes']) {
	lab(
		`an unknown host key, kept after a yes with HashKnownHosts ${hash}, is known to OpenSSH too`,
		canRunSshd,
		async () => {
			const server = await start({known: false});
			const sshConfigFile = join(server.directory, 'config');
			writeFileSync(sshConfigFile, `HashKnownHosts ${hash}\n`);
			const asker = answering(['yes']);
			const host = hostOn({...server.route, sshConfigFile}, {asker});
			await host.settle();
			expect(await say(host)).toBe('/root');
			expect(asker.asked).toMatchObject([{label: `ED25519 ${fingerprintOf(server)}`}]);
			const known = join(server.directory, 'known_hosts');
			const found = execFileSync('ssh-keygen', ['-F', `[127.0.0.1]:${server.port}`, '-f', known]).toString();
			expect(found).toContain('ssh-ed25519');
			expect(readFileSync(known, 'utf8').includes('127.0.0.1')).toBe(hash === 'no');
			const args = [
				'-F',
				'none',
				'-o',
				`UserKnownHostsFile=${known}`,
				'-o',
				'StrictHostKeyChecking=yes',
				'-o',
				'BatchMode=yes',
			];
			const client = [
				...args,
				'-i',
				join(server.directory, 'id'),
				'-p',
				String(server.port),
				'root@127.0.0.1',
				'echo in',
			];
			expect(execFileSync('ssh', client).toString()).toBe('in\n');
		},
	);
}

lab(
	'the command that a refusal of an unknown host key names, run as it stands, makes the route work',
	canRunSshd,
	async () => {
		const server = await start({known: false});
		const refused = hostOn(server.route);
		expect(await say(refused)).toBe('unreachable');
		const command = /then keep it: (.*)$/.exec(reasonOf(refused) ?? '')?.[1] ?? 'false';
		execFileSync('/bin/sh', ['-c', command], {stdio: 'ignore'});
		expect(await say(hostOn(server.route))).toBe('/root');
	},
);

lab(
	'an encrypted key is asked for once, opened in memory, and the agent is named where nobody can be asked',
	canRunSshd,
	async () => {
		const server = await start({passphrase: 'open sesame'});
		const alone = hostOn(server.route);
		expect(await say(alone)).toBe('unreachable');
		expect(reasonOf(alone)).toContain(`${server.directory}/id is encrypted: \`ssh-add ${server.directory}/id\``);
		const asker = answering(['open barley'], ['open sesame']);
		const host = hostOn(server.route, {asker});
		await host.settle();
		expect(await say(host)).toBe('/root');
		expect(asker.asked.map(each => each.kind)).toEqual(['passphrase', 'passphrase']);
		const [session] = server.sessions();
		send(session as number, 'SIGKILL');
		await until(async () => (await say(host)) === '/root');
		expect(asker.asked).toHaveLength(2);
	},
);

lab(
	"keys in an agent are used, and one that is stopped costs no more than the login by the key's own file",
	canRunSshd,
	async () => {
		const server = await start();
		const socket = join(server.directory, 'agent');
		const agent = spawn('ssh-agent', ['-D', '-a', socket], {stdio: 'ignore'});
		try {
			await until(() => existsSync(socket));
			execFileSync('ssh-add', [join(server.directory, 'id')], {
				env: {...process.env, SSH_AUTH_SOCK: socket},
				stdio: 'ignore',
			});
			const byAgent = hostOn({...server.route, identityFile: '/nonexistent/id'}, {agent: socket});
			expect(await say(byAgent)).toBe('/root');
			send(agent.pid as number, 'SIGSTOP');
			expect(await say(hostOn(server.route, {agent: socket}))).toBe('/root');
		} finally {
			send(agent.pid as number, 'SIGKILL');
		}
	},
);

lab("the prompts of a server's own come as it words them, three times, and then no more", canRunSshd, async () => {
	const server = await start({lines: ['UsePAM yes', 'KbdInteractiveAuthentication yes', 'PermitRootLogin yes']});
	const asker = answering(['wrong'], ['wrong too'], ['no']);
	const host = hostOn({...server.route, identityFile: '/nonexistent/id'}, {asker});
	await host.settle();
	expect(asker.asked).toHaveLength(3);
	expect(asker.asked[0]).toMatchObject({
		kind: 'prompts',
		account: `root@[127.0.0.1]:${server.port}`,
		prompts: [{text: expect.stringMatching(/Password: $/), echo: false}],
	});
	expect(reasonOf(host)).toMatch(/^denied: root@\S+ refuses the login: .*its prompts were answered in vain/);
});

lab(
	'ProxyJump over a second server: both host keys checked, and the hop alone is where the host is reached from',
	canRunSshd,
	async () => {
		const [jump, gpu] = [await start(), await start()];
		const sshConfigFile = join(gpu.directory, 'config');
		const entry = (alias: string, {directory, port}: Sshd) =>
			`Host ${alias}\n  HostName 127.0.0.1\n  Port ${port}\n  User root\n  IdentityFile ${directory}/id\n  UserKnownHostsFile ${directory}/known_hosts\n`;
		writeFileSync(sshConfigFile, `${entry('jump', jump)}${entry('gpu', gpu)}  ProxyJump jump\n`);
		const route = {...gpu.route, ssh: 'gpu', identityFile: null, knownHostsFile: null, sshConfigFile};
		const host = hostOn(route);
		const answers = await Promise.all(LANES.map(lane => host.ask(lane, `echo ${lane}`, LIMITS)));
		expect(answers.map(each => (each.ok ? each.value.stdout.trim() : each.failure))).toEqual(LANES);
		expect([jump.sessions().length, gpu.sessions().length]).toEqual([1, 1]);
		await jump.changeHostKey();
		const after = hostOn(route);
		expect(await say(after)).toBe('unreachable');
		expect(reasonOf(after)).toMatch(/^denied: hop jump: host key of \[127\.0\.0\.1\]:\d+ is changed/);
	},
);

lab('a hop that freezes takes the way with it, and is named', canRunSshd, async () => {
	const [jump, gpu] = [await start(), await start()];
	const sshConfigFile = join(gpu.directory, 'config');
	writeFileSync(
		sshConfigFile,
		`Host jump\n  HostName 127.0.0.1\n  Port ${jump.port}\n  User root\n  IdentityFile ${jump.directory}/id\nHost gpu\n  HostName 127.0.0.1\n  Port ${gpu.port}\n  User root\n  IdentityFile ${gpu.directory}/id\n  ProxyJump jump\n`,
	);
	const knownHostsFile = join(gpu.directory, 'both');
	writeFileSync(
		knownHostsFile,
		[jump, gpu].map(each => readFileSync(`${each.directory}/known_hosts`, 'utf8')).join(''),
	);
	const route = {...gpu.route, ssh: 'gpu', identityFile: null, knownHostsFile, sshConfigFile};
	const host = hostOn(route);
	expect(await say(host)).toBe('/root');
	for (const pid of [jump.pid, ...jump.sessions()]) send(pid, 'SIGSTOP');
	await until(async () => (await say(host)) !== '/root', 30_000);
	await until(() => host.status.state === 'down', 30_000);
	expect(reasonOf(host)).toMatch(/^unreachable \(handshake\): hop jump: port answers, no SSH session/);
	for (const pid of [jump.pid, ...jump.sessions()]) send(pid, 'SIGCONT');
	await until(async () => (await say(host)) === '/root', 30_000);
});

lab('an act whose session is killed under it is unknown, and is never sent again by any way', canRunSshd, async () => {
	const server = await start();
	const host = hostOn(server.route, {second: true});
	expect(await say(host)).toBe('/root');
	const marks = join(server.directory, 'marks');
	const result = act(host, `echo done >>${marks}; sleep 30`, 20_000);
	await until(() => existsSync(marks));
	for (const pid of server.sessions()) send(pid, 'SIGKILL');
	expect(await result).toMatchObject({
		kind: 'unknown',
		words: expect.stringMatching(/^connection lost, outcome unknown/),
	});
	await until(async () => /root|other/.test(await say(host)));
	await until(async () => (await say(host, 'act')) !== 'lost');
	expect(readFileSync(marks, 'utf8')).toBe('done\n');
});
