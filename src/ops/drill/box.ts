import {existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {stringify} from 'yaml';
import type {Target} from '../target.ts';
import {freePort, openRoutes} from './box-routes.ts';
import {boxConfig, boxTarget, withHook} from './box-target.ts';
import {buildData, HIDDEN_SIZE, type Sums} from './build-data.ts';
import {type BoxSglang, buildHost, write} from './build-host.ts';
import {Census} from './census.ts';
import {type Fault, type FaultId, faultOf, type Ground, type ServerTrouble} from './faults.ts';
import {Gpus} from './gpus.ts';
import {type Leash, makeLeash, signalBoxProcess, startWarden} from './leash.ts';
import {type BoxPaths, boxPath, boxPaths} from './paths.ts';
import {Population} from './population.ts';
import {ProcMirror} from './proc-mirror.ts';
import {type Random, seeded} from './random.ts';
import {Received} from './received.ts';
import {type DatasetRecord, type Dimensions, dimensions, makeRecords} from './records.ts';
import {Requests} from './requests.ts';
import {settle} from './residents.ts';
import {type Score, type Signalled, scorer} from './score.ts';
import {serviceRequests} from './service-requests.ts';
import type {Freeze, SshRoute} from './ssh-route.ts';
import {fileTools, type MountTrouble} from './stand-ins/file-tools.ts';
import {Units} from './units.ts';

export type BoxOptions = {
	/** What is wrong beyond the incident. */
	readonly faults?: readonly FaultId[];
	readonly seed: number;
	/** 1 is a tenth of the incident; less makes all of it smaller. */
	readonly scale?: number;
	/** Where to build; without it a new temporary directory, which goes away with the box. */
	readonly directory?: string;
	/** argv that starts the relight bundle. */
	readonly program: readonly string[];
	/** Directories in which the machine's own Python is looked for; empty: the box goes without one. */
	readonly pythonPath?: readonly string[];
};

const INCIDENT_SGLANG: BoxSglang = {version: '0.5.9', patched: true};

/** Where Pythons lie: what the operator runs first, then the system's. */
const PYTHON_PATH = [...(process.env.PATH?.split(':') ?? []), '/usr/local/bin', '/usr/bin'];

export type Box = {
	readonly directory: string;
	readonly paths: BoxPaths;
	readonly target: Target;
	readonly configFile: string;
	readonly direct: Pick<SshRoute, 'port' | 'freeze' | 'thaw'>;
	readonly hypervisor: Pick<SshRoute, 'port' | 'freeze' | 'thaw'>;
	score(signalled: Signalled): Promise<Score>;
	/** What dumped hidden states through the hook, in words; null: no server with the hook came up. */
	hookWriter(): string | null;
	close(): Promise<void>;
};

const TICK_MS = 200;
/** `frozen-ssh`: long enough for the console to connect and look around. */
const FREEZE_AFTER_MS = 6_000;

/** Builds the box and starts everything that lives in it. Rejects when something of it cannot be made. */
export async function buildBox({
	faults: asked = [],
	seed,
	scale = 1,
	directory,
	program,
	pythonPath,
}: BoxOptions): Promise<Box> {
	const faults = asked.map(faultOf);
	if (directory !== undefined) mkdirSync(directory, {recursive: true});
	const root = realpathSync(directory ?? mkdtempSync(join(tmpdir(), 'relight-drill-')));
	if (/[^A-Za-z0-9._/@+-]/.test(root))
		throw new Error(`a box cannot stand in ${root}: its path needs plain characters`);
	const paths = boxPaths(root);
	write(paths.mark, '');
	const random = seeded(seed);
	const size = faults.reduce((size, fault) => fault.size?.(size) ?? size, dimensions(scale));
	const records = makeRecords(size.records, seed);
	const sglang = faults.find(fault => fault.sglang)?.sglang ?? INCIDENT_SGLANG;
	buildHost(paths, program, random, sglang);
	const sums = buildData(paths, records, size);

	const leash = makeLeash(paths);
	startWarden(paths, leash, directory === undefined);
	const population = new Population(leash, boxPath(paths), paths.home);
	try {
		return await inhabit(
			{
				faults,
				seed,
				size,
				paths,
				program,
				random,
				records,
				sums,
				leash,
				population,
				sglang,
				searchPath: pythonPath ?? PYTHON_PATH,
			},
			directory === undefined,
		);
	} catch (error) {
		population.end();
		leash.cut();
		throw error;
	}
}

type Furnished = {
	readonly faults: readonly Fault[];
	readonly seed: number;
	readonly paths: BoxPaths;
	readonly program: readonly string[];
	readonly random: Random;
	readonly records: readonly DatasetRecord[];
	readonly size: Dimensions;
	readonly sums: Sums;
	readonly leash: Leash;
	readonly population: Population;
	readonly sglang: BoxSglang;
	readonly searchPath: readonly string[];
};

/** Opens the routes, starts what lives in the box, and keeps its tables true until it is closed. */
async function inhabit(furnished: Furnished, removeBox: boolean): Promise<Box> {
	const {faults, paths, program, random, records, size, leash, population, sglang, searchPath} = furnished;
	const has = (id: FaultId): boolean => faults.some(fault => fault.id === id);
	const received = new Received();
	const {direct, hypervisor} = await openRoutes(paths, leash.readEnd, received);
	const incident = boxTarget({
		...furnished,
		directPort: direct.port,
		hypervisorPort: hypervisor.port,
		serverPort: await freePort(),
	});
	const hooked = has('hook') ? withHook(incident, paths, sglang.version) : incident;
	const target = faults.reduce((before, fault) => fault.configures?.(before) ?? before, hooked);
	// A generator of their own: what a seed makes of the rest stays the same with and without faults.
	const mishap = seeded(furnished.seed ^ 0xfa17);
	const trouble = faults.map(fault => fault.server?.(mishap) ?? {});
	const serverTrouble: ServerTrouble = Object.assign({dies: null, hangs: null}, ...trouble);
	writeFileTools(paths, faults, {paths, records, size});
	write(
		paths.config,
		`# The drill's box as a configuration: relight --config ${paths.config}\n${stringify(boxConfig(target))}`,
	);
	write(
		paths.settings,
		JSON.stringify({
			target,
			hiddenSize: HIDDEN_SIZE,
			records: records.length,
			sglang: sglang.version,
			searchPath,
			serverTrouble,
		}),
	);

	const census = new Census(paths, population, program);
	const units = new Units(paths, population, census);
	const requests = new Requests(paths, serviceRequests(paths, units, population));
	settle(paths, units, population);
	const spoilt = new Set<number>();
	for (const fault of faults)
		await fault.ruins?.({paths, target, records, size, random: mishap, program, population, units, spoilt});
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

	let freezing: NodeJS.Timeout | null = null;
	if (has('frozen-launch')) received.onAct = script => isLaunch(script) && direct.freeze('no-sessions');
	else if (!has('frozen-ssh')) direct.freeze('mute');
	else {
		freezing = setTimeout(() => direct.freeze('no-sessions'), FREEZE_AFTER_MS);
		freezing.unref();
	}

	const score = scorer({target, records, population, spoilt, received, atBoot: () => units.atBoot()});
	let closed = false;
	return {
		directory: paths.root,
		paths,
		target,
		configFile: paths.config,
		direct,
		hypervisor,
		score,
		hookWriter: () => (existsSync(paths.hookWriter) ? readFileSync(paths.hookWriter, 'utf8') : null),
		async close() {
			if (closed) return;
			closed = true;
			if (freezing) clearTimeout(freezing);
			clearInterval(clock);
			requests.close();
			units.close();
			await Promise.all([direct.close(), hypervisor.close()]);
			population.end();
			for (const {pid, startTicks} of census.take()) signalBoxProcess(leash.path, pid, startTicks, 'SIGKILL');
			leash.cut();
			if (removeBox) rmSync(paths.root, {recursive: true, force: true, maxRetries: 5, retryDelay: 50});
		},
	};
}

const isLaunch = (script: string): boolean => script.includes('systemd-run');

/** Only a mount in trouble is worth a shell around every tool. */
function writeFileTools(paths: BoxPaths, faults: readonly Fault[], ground: Pick<Ground, 'paths' | 'records' | 'size'>) {
	const trouble: MountTrouble = Object.assign(
		{hung: null, full: null},
		...faults.map(fault => fault.mount?.(ground) ?? {}),
	);
	if (trouble.hung === null && trouble.full === null) return;
	for (const [name, text] of Object.entries(fileTools(paths, trouble))) write(`${paths.bin}/${name}`, text, 0o755);
}

export type {Freeze, Score, Signalled};
