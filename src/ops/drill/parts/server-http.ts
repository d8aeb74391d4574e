import {createServer, type IncomingMessage, type Server, type ServerResponse} from 'node:http';
import type {ServerArguments} from './server-arguments.ts';
import type {ServerLog} from './server-log.ts';
import type {Model} from './server-model.ts';

export type ServerState = {ready: boolean; draining: boolean};

type Reply = {readonly status: number; readonly body: unknown};

/** The HTTP side of the stand-in server, as SGLang's from 0.5.9 on. It listens on loopback only, whatever --host says. */
export function httpServer(
	args: ServerArguments,
	model: Model,
	state: ServerState,
	log: ServerLog,
	version: string,
): Server {
	const startedAt = Date.now() / 1_000;
	const routes: Record<string, (body: string) => Promise<Reply>> = {
		'/health': health,
		'/health_generate': health,
		'/generate': generate,
		'/model_info': async () => ({status: 200, body: modelInfo}),
		'/get_model_info': async () => ({status: 200, body: modelInfo}),
		'/server_info': async () => ({status: 200, body: serverInfo()}),
		'/get_server_info': async () => ({status: 200, body: serverInfo()}),
		'/v1/models': async () => ({status: 200, body: {object: 'list', data: [{id: args.modelPath, object: 'model'}]}}),
		'/abort_request': async () => ({status: 200, body: ''}),
	};
	const modelInfo = {
		model_path: args.modelPath,
		tokenizer_path: args.modelPath,
		is_generation: true,
		weight_version: 'default',
		model_type: 'kimi_k25',
		architectures: ['KimiK25ForConditionalGeneration'],
	};
	const serverInfo = (): unknown => ({
		...args.values,
		version,
		startup_time: startedAt,
		internal_states: [{}],
	});

	async function health(): Promise<Reply> {
		if (!state.ready || state.draining) return {status: 503, body: ''};
		if (process.env.SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION !== 'false')
			await model.run([0], `HEALTH_CHECK_${Date.now()}`);
		return {status: 200, body: ''};
	}

	async function generate(text: string): Promise<Reply> {
		const asked: {input_ids?: unknown; rid?: unknown} = JSON.parse(text);
		const ids = asked.input_ids;
		if (!Array.isArray(ids) || ids.length === 0 || !ids.every(id => Number.isSafeInteger(id))) {
			return {status: 400, body: {error: {message: 'input_ids must be a non-empty list of integers'}}};
		}
		if (state.draining) return {status: 503, body: {error: {message: 'The server is shutting down'}}};
		const startedAt = Date.now();
		const id = typeof asked.rid === 'string' ? asked.rid : crypto.randomUUID().replaceAll('-', '');
		await model.run(ids, id);
		const meta = {
			id,
			finish_reason: {type: 'length', length: 1},
			prompt_tokens: ids.length,
			weight_version: 'default',
			completion_tokens: 1,
			cached_tokens: 0,
			e2e_latency: (Date.now() - startedAt) / 1_000,
		};
		return {status: 200, body: {text: '', output_ids: [0], meta_info: meta}};
	}

	return createServer((request, response) => {
		const path = (request.url ?? '').split('?')[0] ?? '';
		const answer = routes[path];
		const reply = answer ? readBody(request).then(answer) : Promise.resolve({status: 404, body: {detail: 'Not Found'}});
		void reply
			.catch(error => ({status: 500, body: {error: {message: String(error)}}}))
			.then(({status, body}) => {
				send(response, status, body);
				const words = {200: 'OK', 400: 'Bad Request', 404: 'Not Found', 503: 'Service Unavailable'}[status] ?? 'Error';
				log.line(
					`INFO:     127.0.0.1:${request.socket.remotePort ?? 0} - "${request.method} ${path} HTTP/1.1" ${status} ${words}`,
				);
			});
	});
}

async function readBody(request: IncomingMessage): Promise<string> {
	const pieces: Buffer[] = [];
	for await (const piece of request) pieces.push(piece);
	return Buffer.concat(pieces).toString('utf8');
}

function send(response: ServerResponse, status: number, body: unknown): void {
	const text = body === '' ? '' : JSON.stringify(body);
	response.writeHead(status, {'content-type': 'application/json', 'content-length': Buffer.byteLength(text)});
	response.end(text);
}
