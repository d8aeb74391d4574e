import {mkdirSync, rmSync, truncateSync, writeFileSync} from 'node:fs';
import {createServer, type Server} from 'node:http';
import type {AddressInfo} from 'node:net';
import {setTimeout as sleep} from 'node:timers/promises';
import {bareTensor, HIDDEN_SIZE} from '../../../../src/ops/drill/build-data.ts';
import {tensor} from '../../../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../../../src/ops/tensor/torch-file.ts';
import {fiveStates, type StagedOptions, writeRaw, writeRefusal, writeStaged} from './hook-dumps.ts';

/** How the next answers go wrong; taken off the front, one a request. Without one the answer is right. */
export type Fault =
	| 'no dump'
	| 'a row short'
	| 'cached tokens'
	| 'other rid'
	| 'not finite'
	| 'two dumps'
	| 'a stranger too'
	| 'two layers alike'
	| 'a torn dump'
	| 'the dump directory goes'
	| 'busy'
	| 'too long'
	| 'refused by the hook'
	| 'hang up'
	| 'hang';

export type ModelServerOptions = {
	readonly port?: number;
	/** What it says of itself. */
	readonly info?: Readonly<Record<string, unknown>>;
	/** How long a prefill takes. */
	readonly prefillMs?: number;
	/** Called when a request has come. */
	readonly asked?: (rid: string) => void;
	/** Called when a request was dumped, just before the answer. */
	readonly served?: (rid: string) => void;
	/** Another answer for the same ids: a server with another model. */
	readonly shift?: number;
	/** Raw dumps of the hook, with our names, instead of the patch's. */
	readonly named?: boolean;
	/** Files staged by the hook, and where; by request, so that one may be damaged. */
	readonly staged?: {readonly staging: string; readonly options: (rid: string) => StagedOptions};
	/** Tokens a chunk of prefill, where it is cut. */
	readonly chunk?: number;
	/** The hook's two finals under each other's name. */
	readonly swapFinals?: boolean;
	/** What the final state of the patch's dumps is; `long`: four times as long as before the norm. */
	readonly final?: 'pre' | 'post' | 'long';
};

export type ModelServer = {
	readonly port: number;
	readonly faults: Fault[];
	readonly rids: string[];
	/** Most requests that were under way at once. */
	readonly most: () => number;
	/** Answers nothing any more, or again; what came meanwhile stays unanswered. */
	hang(on: boolean): void;
	close(): Promise<void>;
};

function withNan(rows: number): Buffer {
	const data = Buffer.alloc(rows * HIDDEN_SIZE * 2, 0x3f);
	data.writeUInt16LE(0x7fc0, 2 * HIDDEN_SIZE);
	return Buffer.concat(torchFile(planTorchFile('final', tensor('BF16', [rows, HIDDEN_SIZE])), [data]));
}

function otherFinal(ids: readonly number[], final: 'post' | 'long'): Buffer {
	const {final_pre: pre, final_post: post} = fiveStates(ids);
	const data = final === 'post' ? post : longer(pre);
	return Buffer.concat(torchFile(planTorchFile('final', tensor('BF16', [ids.length, HIDDEN_SIZE])), [data]));
}

/** Four times each value: two more in the exponent. */
const longer = (state: Buffer): Buffer =>
	Buffer.from(new Uint16Array(Uint8Array.from(state).buffer).map(bits => bits + 0x100).buffer);

const FILES = ['aux_0', 'aux_1', 'aux_2', 'final'];

/** A patched server in a few lines: counts, dumps, answers, and goes wrong when asked to. */
export async function modelServer(dumpDir: string, options: ModelServerOptions = {}): Promise<ModelServer> {
	const {port = 0, info = {}, prefillMs = 0, shift = 0, named = false, chunk, final = 'pre'} = options;
	const {asked = () => {}, served = () => {}} = options;
	const faults: Fault[] = [];
	const rids: string[] = [];
	let counter = 0;
	let running = 0;
	let most = 0;
	let hanging = false;
	const dump = (ids: readonly number[]): string => {
		const directory = `${dumpDir}/req_${++counter}`;
		mkdirSync(directory, {recursive: true});
		for (const [layer, name] of FILES.entries())
			writeFileSync(`${directory}/${name}.pt`, bareTensor(name, ids, layer + shift));
		if (final !== 'pre') writeFileSync(`${directory}/final.pt`, otherFinal(ids, final));
		writeFileSync(`${directory}/done`, '');
		return directory;
	};

	async function generate(text: string): Promise<Reply | null> {
		const {input_ids: ids, rid}: {input_ids: number[]; rid: string} = JSON.parse(text);
		rids.push(rid);
		asked(rid);
		const fault = faults.shift();
		if (fault === 'hang') hanging = true;
		if (hanging || fault === 'hang up') return null;
		if (fault === 'busy') return {status: 503, body: {}};
		if (fault === 'too long')
			return {
				status: 400,
				body: {error: {message: `The input (${ids.length} tokens) is longer than the model's context length`}},
			};
		most = Math.max(most, ++running);
		await sleep(prefillMs);
		running--;
		if (fault === 'refused by the hook') writeRefusal(dumpDir, rid);
		else if (options.staged) writeStaged(options.staged.staging, rid, ids, options.staged.options(rid));
		else if (named)
			writeRaw(dumpDir, rid, ids, {
				swap: options.swapFinals ?? false,
				...(chunk !== undefined && {chunk}),
				...(fault === 'a row short' && {chunk: ids.length - 1, without: [1]}),
			});
		else if (fault !== 'no dump') {
			const made = dump(fault === 'a row short' ? ids.slice(1) : ids);
			if (fault === 'two dumps') dump(ids);
			if (fault === 'a stranger too') dump([0]);
			if (fault === 'not finite') writeFileSync(`${made}/final.pt`, withNan(ids.length));
			if (fault === 'two layers alike') writeFileSync(`${made}/aux_1.pt`, bareTensor('aux_1', ids, 0));
			if (fault === 'a torn dump') truncateSync(`${made}/aux_2.pt`, 700);
		}
		if (fault === 'the dump directory goes') rmSync(options.staged?.staging ?? dumpDir, {recursive: true});
		served(rid);
		const meta = {
			id: fault === 'other rid' ? 'somebody-else' : rid,
			prompt_tokens: ids.length,
			completion_tokens: 1,
			cached_tokens: fault === 'cached tokens' ? 2 : 0,
		};
		return {status: 200, body: {meta_info: meta}};
	}

	const server: Server = createServer((request, response) => {
		const pieces: Buffer[] = [];
		request.on('data', piece => pieces.push(piece));
		request.on('end', async () => {
			if (hanging && request.url !== '/model_info') return;
			const reply: Reply | null =
				request.url === '/generate' ? await generate(Buffer.concat(pieces).toString()) : {status: 200, body: info};
			if (reply === null) {
				if (!hanging) request.socket.destroy();
				return;
			}
			response.writeHead(reply.status, {'content-type': 'application/json'});
			response.end(JSON.stringify(reply.body));
		});
	});
	await new Promise<void>(resolve => server.listen(port, '127.0.0.1', () => resolve()));
	return {
		port: (server.address() as AddressInfo).port,
		faults,
		rids,
		most: () => most,
		hang(on) {
			hanging = on;
		},
		close: () =>
			new Promise(resolve => {
				server.closeAllConnections();
				server.close(() => resolve());
			}),
	};
}

type Reply = {readonly status: number; readonly body: unknown};
