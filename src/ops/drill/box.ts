import {mkdirSync, mkdtempSync, realpathSync, rmSync} from 'node:fs';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {stringify} from 'yaml';
import type {Target} from '../target.ts';
import {boxConfig, boxTarget} from './box-target.ts';
import {buildData, HIDDEN_SIZE} from './build-data.ts';
import {buildHost, write} from './build-host.ts';
import {Census} from './census.ts';
import {Gpus} from './gpus.ts';
import {makeLeash, startWarden} from './leash.ts';
import {type BoxPaths, boxPath, boxPaths} from './paths.ts';
import {Population} from './population.ts';
import {ProcMirror} from './proc-mirror.ts';
import {seeded} from './random.ts';
import {dimensions, makeRecords} from './records.ts';
import {Requests} from './requests.ts';
import {settle} from './residents.ts';
import {type Score, type Signalled, scorer} from './score.ts';
import {serviceRequests} from './service-requests.ts';
import {type Freeze, openSshRoute, type SshRoute} from './ssh-route.ts';
import {Units} from './units.ts';

export type Scenario = 'incident' | 'frozen-ssh';

export type BoxOptions = {
	readonly scenario: Scenario;
	readonly seed: number;
	/** 1 is a tenth of the incident; less makes all of it smaller. */
	readonly scale?: number;
	/** Where to build; without it a new temporary directory, which goes away with the box. */
	readonly directory?: string;
	/** argv that starts the relight bundle. */
	readonly program: readonly string[];
};

export type Box = {
	readonly directory: string;
	readonly paths: BoxPaths;
	readonly target: Target;
	readonly configFile: string;
	readonly direct: Pick<SshRoute, 'port' | 'freeze' | 'thaw'>;
	readonly hypervisor: Pick<SshRoute, 'port' | 'freeze' | 'thaw'>;
	score(signalled: Signalled): Promise<Score>;
	close(): Promise<void>;
};

const TICK_MS = 200;
/** `frozen-ssh`: long enough for the console to connect and look around. */
const FREEZE_AFTER_MS = 6_000;

/** Builds the box and starts everything that lives in it. Rejects when something of it cannot be made. */
export async function buildBox({scenario, seed, scale = 1, directory, program}: BoxOptions): Promise<Box> {
	if (directory !== undefined) mkdirSync(directory, {recursive: true});
	const root = realpathSync(directory ?? mkdtempSync(join(tmpdir(), 'relight-drill-')));
	if (/[^A-Za-z0-9._/@+-]/.test(root))
		throw new Error(`a box cannot stand in ${root}: its path needs plain characters`);
	const paths = boxPaths(root);
	write(paths.mark, '');
	const random = seeded(seed);
	const size = dimensions(scale);
	const records = makeRecords(size.records, seed);
	buildHost(paths, program, random);
	const {scriptSha256} = buildData(paths, records, size);

	const leash = makeLeash(paths);
	startWarden(paths, leash, directory === undefined);
	const population = new Population(leash, boxPath(paths), paths.home);
	const census = new Census(paths, population, program);
	const units = new Units(paths, population, census);
	const asked = new Set<string>();
	const requests = new Requests(paths, serviceRequests(paths, units, asked, population));
	settle(paths, units, population);

	const mirror = new ProcMirror(paths);
	const gpus = new Gpus(paths, random);
	const tick = (): void => {
		const inhabitants = census.take();
		mirror.show(inhabitants);
		gpus.update(inhabitants, Date.now());
		units.tick(inhabitants, Date.now());
		requests.look();
	};
	tick();
	const clock = setInterval(tick, TICK_MS);
	clock.unref();

	const {direct, hypervisor} = await openRoutes(paths, leash.readEnd);
	const target = boxTarget({
		paths,
		records,
		size,
		directPort: direct.port,
		hypervisorPort: hypervisor.port,
		serverPort: await freePort(),
		scriptSha256,
	});
	write(
		paths.config,
		`# The drill's box as a configuration: relight --config ${paths.config}\n${stringify(boxConfig(target))}`,
	);
	write(paths.settings, JSON.stringify({target, hiddenSize: HIDDEN_SIZE, records: records.length}));
	let freezing: NodeJS.Timeout | null = null;
	if (scenario === 'incident') direct.freeze('mute');
	else {
		freezing = setTimeout(() => direct.freeze('no-sessions'), FREEZE_AFTER_MS);
		freezing.unref();
	}

	const score = scorer(target, records, population, asked);
	let closed = false;
	return {
		directory: root,
		paths,
		target,
		configFile: paths.config,
		direct,
		hypervisor,
		score,
		async close() {
			if (closed) return;
			closed = true;
			if (freezing) clearTimeout(freezing);
			clearInterval(clock);
			requests.close();
			units.close();
			await Promise.all([direct.close(), hypervisor.close()]);
			population.end();
			for (const {pid} of census.take()) kill(pid);
			leash.cut();
			if (directory === undefined) rmSync(root, {recursive: true, force: true, maxRetries: 5, retryDelay: 50});
		},
	};
}

function kill(pid: number): void {
	try {
		process.kill(pid, 'SIGKILL');
	} catch {
		// It ended with its parent.
	}
}

/** Two servers with host keys of their own, one user key for both, everything a client needs below operator/. */
async function openRoutes(paths: BoxPaths, leash: number): Promise<{direct: SshRoute; hypervisor: SshRoute}> {
	const {default: ssh2} = await import('ssh2');
	const userKeys = ssh2.utils.generateKeyPairSync('ed25519');
	const user = ssh2.utils.parseKey(userKeys.public);
	if (user instanceof Error) throw user;
	const keys = [ssh2.utils.generateKeyPairSync('ed25519'), ssh2.utils.generateKeyPairSync('ed25519')] as const;
	const env = {PATH: boxPath(paths), HOME: paths.home, LANG: 'C.UTF-8', SHELL: '/bin/sh', USER: 'root'};
	const place = {env, cwd: paths.home, leash};
	const direct = await openSshRoute({hostKey: keys[0].private, user, place});
	const hypervisor = await openSshRoute({hostKey: keys[1].private, user, place});
	write(paths.identity, userKeys.private, 0o600);
	write(`${paths.identity}.pub`, `${userKeys.public} operator\n`);
	const line = (port: number, key: string): string => `[127.0.0.1]:${port} ${key.split(' ').slice(0, 2).join(' ')}\n`;
	write(paths.knownHosts, line(direct.port, keys[0].public) + line(hypervisor.port, keys[1].public));
	return {direct, hypervisor};
}

/** A port nobody listens on now; given back at once, for the stand-in server to take. */
function freePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const probe = createServer();
		probe.once('error', reject);
		probe.listen({port: 0, host: '127.0.0.1'}, () => {
			const address = probe.address();
			probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
		});
	});
}

export type {Freeze, Score, Signalled};
