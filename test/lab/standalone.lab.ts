import {execFileSync, spawn} from 'node:child_process';
import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {afterEach, beforeEach, expect} from 'vitest';
import {builtIn} from '../../bin/built-extractor.ts';
import type {Composition} from '../../bin/compose.ts';
import {readConfig} from '../../src/ops/config/config.ts';
import {fresh} from '../../src/ops/facts.ts';
import {isRefusal} from '../../src/ops/operations/operation.ts';
import {extractorPlan} from '../../src/ops/operations/run-extractor.ts';
import {sendExtractor} from '../../src/ops/operations/send-extractor.ts';
import type {BuiltExtractor, RouteConfig, Target} from '../../src/ops/target.ts';
import {SYSTEM_ENVIRONMENT} from '../../src/ops/transports/transport.ts';
import {allNull, Bench} from '../ops/extract/support/bench.ts';
import {all, lab} from './needs.ts';
import {openOn} from './operator.ts';
import {canRunSshd, type Sshd, startSshd} from './sshd.ts';

let bench: Bench;
let folder = '';
let server: Sshd | null = null;
let open: Composition | null = null;
beforeEach(async () => {
	bench = new Bench();
	folder = mkdtempSync(join(tmpdir(), 'relight-standalone-'));
	mkdirSync(bench.extraction.output);
	await bench.serve();
});
afterEach(async () => {
	await open?.engine.stop();
	await server?.close();
	open = null;
	server = null;
	rmSync(folder, {recursive: true, force: true});
	await bench.end();
});

const canBuild = (): string | null =>
	process.platform !== 'linux'
		? `an executable for Linux is built on Linux, not on ${process.platform}`
		: 'node_shared' in process.config.variables && process.config.variables.node_shared
			? 'this Node is only a shell around its libraries: no executable can be made of it'
			: null;

/** As `npm run build:standalone` left it, or made now. */
function built(): BuiltExtractor {
	const look = () => builtIn(join(process.cwd(), 'dist'));
	const isThere = () => look()?.executables.some(({architecture}) => architecture === process.arch);
	if (!isThere()) execFileSync(process.execPath, ['bin/build-standalone.js'], {stdio: 'pipe'});
	const found = look();
	if (!found || !isThere()) throw new Error('build-standalone left no executable');
	return found;
}

const SYSTEM = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/** A PATH with every program of the system but Node. */
function pathWithoutNode(): string {
	const tools = join(folder, 'bin');
	mkdirSync(tools);
	for (const directory of SYSTEM)
		for (const name of readdirSync(directory)) {
			const link = join(tools, name);
			if (name !== 'node' && !existsSync(link)) symlinkSync(join(directory, name), link);
		}
	return tools;
}

/** The bench as a host of the configuration. */
function targetOn(route: RouteConfig): Target {
	const {dataset, output, groupSize, hiddenSize, maxTokens, progress} = bench.extraction;
	const read = readConfig(
		JSON.stringify({
			hosts: {lab: {routes: [{local: true}]}},
			server: {python: '/nonexistent/python3', model: bench.model, port: bench.server.port, log: `${folder}/logs`},
			dump: {dir: bench.dumps},
			extraction: {
				...{dataset, output, groupSize, hiddenSize, maxTokens, progress, confirm: 1},
				expect: {records: bench.records.length},
				log: `${folder}/logs/extraction.log`,
			},
		}),
		'relight.yaml',
	);
	const [target] = read.ok ? read.targets : [];
	if (!target?.extraction) throw new Error(JSON.stringify(read));
	return {...target, routes: [route], extraction: {...target.extraction, built: built()}};
}

lab('the executable extracts a tree whole where there is no Node', canBuild, async () => {
	const target = targetOn({
		ssh: null,
		through: null,
		identityFile: null,
		knownHostsFile: null,
		environment: SYSTEM_ENVIRONMENT,
	});
	const bare = {...SYSTEM_ENVIRONMENT, path: pathWithoutNode()};
	open = await openOn({...target, routes: target.routes.map(route => ({...route, environment: bare}))}, folder);
	await open.engine.look(['files']);
	const situation = open.engine.situation();
	expect(fresh(situation.facts.files)).toMatchObject({node: '', machine: expect.stringMatching(/./)});
	const sent = sendExtractor(situation, []);
	if (isRefusal(sent)) throw new Error(sent.refused);
	const [program, config] = sent.steps;
	writeFileSync(`${folder}/config.json`, config?.kind === 'run' ? (config.program ?? '') : '');
	const ended = await new Promise<{code: number | null; said: string}>(resolve => {
		const argv = ['--config', `${folder}/config.json`];
		const child = spawn(program?.kind === 'send' ? program.source : '', argv, {cwd: '/', env: {PATH: bare.path}});
		let said = '';
		for (const stream of [child.stdout, child.stderr])
			stream.on('data', chunk => {
				said += chunk;
			});
		child.once('close', code => resolve({code, said}));
	});
	expect(ended.code, ended.said).toBe(0);
	expect(allNull(bench.wrong())).toBe(true);
});

lab(
	'run-extractor on a host without Node sends it over ssh, once, and sees whole files',
	all(canBuild, canRunSshd),
	async () => {
		server = await startSshd();
		const environment = {...SYSTEM_ENVIRONMENT, path: pathWithoutNode()};
		open = await openOn(targetOn({...server.route, environment}), folder);
		const {engine} = open;
		const run = async () => {
			await engine.look(['files', 'services', 'extraction']);
			await engine.look(['extraction']);
			const plan = extractorPlan(engine.situation());
			if (isRefusal(plan)) throw new Error(plan.refused);
			const words: string[] = [];
			const outcome = await engine.run(plan, event => {
				if ('words' in event) words.push(event.words);
			});
			return {plan, outcome, words};
		};
		const {plan, outcome, words} = await run();
		expect({outcome, words: outcome === 'done' ? [] : words}).toEqual({outcome: 'done', words: []});
		const [program] = plan.steps;
		if (program?.kind !== 'send') throw new Error('nothing is sent');
		const path = /^p=(\S+)$/m.exec(program.script)?.[1] ?? '';
		const content = readFileSync(program.source);
		expect(readFileSync(path).equals(content)).toBe(true);
		const {ino} = statSync(path);
		let sent = 0;
		const again = await engine.host.send(program.script, content, program.limitMs, {
			pieceBytes: program.pieceBytes,
			onSent: bytes => {
				sent = bytes;
			},
		});
		expect(again).toMatchObject({ok: true, value: {status: 0, stdout: expect.stringContaining(program.sha256 ?? '')}});
		expect({ino: statSync(path).ino, sent}).toEqual({ino, sent: 0});
		expect(allNull(bench.wrong())).toBe(true);
	},
);
