import {existsSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import type {Server} from 'node:http';
import {createServer, type Server as NetServer} from 'node:net';
import {setTimeout as sleep} from 'node:timers/promises';
import type {ServerTrouble} from '../faults.ts';
import {CARD_MEMORY_MIB} from '../gpus.ts';
import {type PartBox, whenLeashEnds} from './part-box.ts';
import {helpText, parseServerArguments, type ServerArguments, showArguments} from './server-arguments.ts';
import {hookSide} from './server-hook.ts';
import {httpServer, type ServerState} from './server-http.ts';
import {ServerLog} from './server-log.ts';
import {Model} from './server-model.ts';
import {Ranks} from './server-ranks.ts';

/** Why the server ends instead of starting: what it prints, and its exit status. */
class StartFailed extends Error {}

/** Some hundred MiB on an idle card are the driver's own. */
const OCCUPIED_MIB = 1_024;
const LOADED_MIB = 75_310;
const SERVING_MIB = 86_020;

/** `python -m sglang.launch_server`: takes the real line, prints the real log, serves the real endpoints, in about 4 s. */
export async function runServer(box: PartBox, argv: readonly string[]): Promise<number> {
	if (argv.includes('--help')) {
		process.stdout.write(helpText());
		return 0;
	}
	const args = parseServerArguments(argv);
	if ('error' in args) {
		process.stderr.write(args.error);
		return 2;
	}
	const log = new ServerLog();
	const ranks = new Ranks(box.paths);
	const note = `${box.paths.ports}/${args.port}`;
	let code = 0;
	whenLeashEnds(() => process.exit(1));
	const state: ServerState = {ready: false, draining: false};
	const model = new Model(box, log);
	const server = httpServer(args, model, state, log, box.sglang);
	const ended = new Promise<void>(resolve => {
		const terminate = (): void => {
			state.draining = true;
			log.line('Gracefully exiting... Remaining number of requests: 0. Remaining requests remaining_rids=[].');
			resolve();
		};
		process.once('SIGTERM', terminate);
		process.once('SIGINT', terminate);
	});
	const crash = new Promise<never>((_, reject) => {
		const crashed = async (name: string, pid: number, status: number): Promise<void> => {
			// A stop reaches the whole control group at once, and a rank may be gone before our own TERM is heard of.
			await sleep(300);
			if (state.draining) return;
			log.line(`Subprocess ${name} (pid=${pid}) crashed with exit code ${status}`);
			log.line('Received sigquit from a child process. It usually means the child failed.');
			reject(new StartFailed());
		};
		void startUp(box, args, {log, ranks, model, server, state, crashed}).catch(reject);
	});
	try {
		await Promise.race([ended, crash]);
		while (model.running > 0) await sleep(20);
	} catch (error) {
		if (!(error instanceof StartFailed)) log.raw(`${error instanceof Error ? error.stack : error}\n`);
		else if (error.message) log.raw(error.message);
		code = 1;
	}
	model.end();
	ranks.end();
	rmSync(note, {force: true});
	server.closeAllConnections();
	server.close();
	return code;
}

type Parts = {
	readonly log: ServerLog;
	readonly ranks: Ranks;
	readonly model: Model;
	readonly server: Server;
	readonly state: ServerState;
	readonly crashed: (name: string, pid: number, code: number) => void;
};

async function startUp(
	box: PartBox,
	args: ServerArguments,
	{log, ranks, model, server, state, crashed}: Parts,
): Promise<void> {
	log.line(`server_args=${showArguments(args)}`);
	if (!existsSync(`${args.modelPath}/config.json`)) {
		throw new StartFailed(
			`Traceback (most recent call last):\nOSError: ${args.modelPath} does not appear to have a file named config.json.\n`,
		);
	}
	await portIsFree(args.port);
	await sleep(250);
	const occupied = memoryUsed(box);
	ranks.start(args.tensorParallel, crashed);
	for (let rank = 0; rank < args.tensorParallel; rank++) log.line('Init torch distributed begin.', rank);
	await sleep(450);
	const most = Math.max(...occupied);
	if (most > OCCUPIED_MIB) throw new StartFailed(unbalanced(most));
	for (let rank = 0; rank < args.tensorParallel; rank++)
		log.line('Init torch distributed ends. mem usage=0.60 GB', rank);
	await loadWeights(args, log, ranks, box.serverTrouble);
	await sleep(200);
	ranks.hold(SERVING_MIB);
	log.line('KV Cache is allocated. #tokens: 188160, KV size: 8.75 GB', 0);
	log.line('Memory pool end. avail mem=10.51 GB', 0);
	model.use(await registerHooks(box, args, log));
	log.line(
		`max_total_num_tokens=188160, chunked_prefill_size=${args.values.chunked_prefill_size}, max_prefill_tokens=${args.values.max_prefill_tokens}, max_running_requests=2048, context_len=262144, available_gpu_mem=10.41 GB`,
		0,
	);
	log.line(`INFO:     Started server process [${process.pid}]`);
	log.line('INFO:     Waiting for application startup.');
	await listen(server, args.port);
	writeFileSync(`${box.paths.ports}/${args.port}`, `${process.pid} python3\n`);
	log.line('INFO:     Application startup complete.');
	log.line(`INFO:     Uvicorn running on http://${args.host}:${args.port} (Press CTRL+C to quit)`);
	state.ready = true;
	await sleep(250);
	if (args.values.skip_server_warmup !== 'True')
		await model.run([163_584, 1_008, 387, 9_317, 374, 261], crypto.randomUUID().replaceAll('-', ''));
	await sleep(150);
	log.line('The server is fired up and ready to roll!');
}

/** A module that cannot be imported ends the rank, and the server with it. */
async function registerHooks(box: PartBox, args: ServerArguments, log: ServerLog) {
	try {
		return await hookSide(box, args.values.forward_hooks, log, args.tensorParallel);
	} catch (error) {
		const words = error instanceof Error ? error.message : String(error);
		throw new StartFailed(
			`Scheduler hit an exception: Traceback (most recent call last):\n${words}\nReceived sigquit from a child process. It usually means the child failed.\n`,
		);
	}
}

/** SGLang looks at its port before it loads anything, and listens only afterwards. */
async function portIsFree(port: number): Promise<void> {
	const probe = createServer();
	await listen(probe, port);
	await new Promise(resolve => probe.close(resolve));
}

function listen(server: NetServer, port: number): Promise<void> {
	return new Promise((resolve, reject) => {
		server.once('error', (error: NodeJS.ErrnoException) => {
			if (error.code !== 'EADDRINUSE') return reject(error);
			const words = `Port ${port} is not available in 30 seconds. It is used by a process already.`;
			reject(new StartFailed(`Traceback (most recent call last):\nValueError: ${words}\n`));
		});
		server.listen({port, host: '127.0.0.1'}, () => resolve());
	});
}

/** memory.used of every card, from the table that the drill draws. */
function memoryUsed({paths}: PartBox): number[] {
	const [fields = '', , ...rows] = readFileSync(paths.cards, 'utf8').trim().split('\n');
	const column = fields.split('\t').indexOf('memory.used');
	return rows.map(row => Number(row.split('\t')[column]));
}

function unbalanced(usedMib: number): string {
	const free = (CARD_MEMORY_MIB - usedMib) / 1_024;
	return `Scheduler hit an exception: Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 3117, in run_scheduler_process
  File "sglang/srt/model_executor/model_runner.py", line 861, in init_torch_distributed
ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=${free.toFixed(2)}, local_gpu_memory=94.98, local_gpu_memory * 0.9=85.48
Received sigquit from a child process. It usually means the child failed.
`;
}

const scheduler = (says: string): string => `
Scheduler hit an exception: Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 3117, in run_scheduler_process
  File "sglang/srt/model_loader/loader.py", line 681, in load_weights_and_postprocess
${says}
Received sigquit from a child process. It usually means the child failed.
`;

async function loadWeights(
	{modelPath, tensorParallel}: ServerArguments,
	log: ServerLog,
	ranks: Ranks,
	{dies, hangs}: ServerTrouble,
): Promise<void> {
	for (let rank = 0; rank < tensorParallel; rank++) log.line('Load weight begin. avail mem=94.08 GB', rank);
	const index: {weight_map: Record<string, string>} = JSON.parse(
		readFileSync(`${modelPath}/model.safetensors.index.json`, 'utf8'),
	);
	const shards = [...new Set(Object.values(index.weight_map))].sort();
	const startedAt = Date.now();
	const seconds = (): number => Math.max((Date.now() - startedAt) / 1_000, 0.01);
	for (const [done, shard] of shards.entries()) {
		log.shards(done, shards.length, seconds());
		if (!existsSync(`${modelPath}/${shard}`)) {
			throw new StartFailed(
				`\nTraceback (most recent call last):\nRuntimeError: Cannot find any model weights with \`${modelPath}/${shard}\`\n`,
			);
		}
		if (dies?.shard === done) throw new StartFailed(scheduler(dies.says));
		if (hangs?.shard === done) await new Promise(() => {});
		if (done % 16 === 0) ranks.hold(Math.round(614 + ((LOADED_MIB - 614) * done) / shards.length));
		await sleep(32);
	}
	log.shards(shards.length, shards.length, seconds());
	log.raw('\n');
	log.shards(shards.length, shards.length, seconds() * 0.95);
	log.raw('\n\n');
	ranks.hold(LOADED_MIB);
	for (let rank = 0; rank < tensorParallel; rank++) {
		log.line(
			`Load weight end. elapsed=${seconds().toFixed(2)} s, type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.13 GB, mem usage=72.95 GB.`,
			rank,
		);
	}
}
