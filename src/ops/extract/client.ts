import {Agent, request} from 'node:http';
import type {ServerConfig} from '../target.ts';

export type Generated = {readonly id: string; readonly promptTokens: number; readonly cachedTokens: number};

/** Nobody answers, or not yet: wait and ask again, the sample is not to blame. */
export class ServerAway extends Error {}
/** The server refuses this request; repeating it changes nothing. */
export class Refused extends Error {}

/** A prefill of one long sample on a busy server. */
const GENERATE_LIMIT_MS = 300_000;
const AWAY = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND', 'EHOSTUNREACH']);

/** What the extractor asks of the model server, on this host's loopback. */
export class Client {
	private readonly agent = new Agent({keepAlive: true});

	constructor(private readonly server: Pick<ServerConfig, 'port'>) {}

	/** Whether the HTTP side is up. Asks nothing of the model: a health probe would run it, and dump. */
	async up(): Promise<boolean> {
		try {
			const {status} = await this.ask('GET', '/model_info', null, 5_000);
			return (
				status === 200 || (status === 404 && (await this.ask('GET', '/get_model_info', null, 5_000)).status === 200)
			);
		} catch {
			return false;
		}
	}

	/** One prefill of these ids and one new token. Rejects with ServerAway, Refused, or an Error worth a retry. */
	async generate(rid: string, inputIds: readonly number[]): Promise<Generated> {
		const body = {input_ids: inputIds, sampling_params: {max_new_tokens: 1, temperature: 0}, rid, stream: false};
		const {status, text} = await this.ask('POST', '/generate', JSON.stringify(body), GENERATE_LIMIT_MS);
		if (status === 503) throw new ServerAway('the server is starting or draining');
		if (status === 400) throw new Refused(`HTTP 400: ${text.slice(0, 300)}`);
		if (status !== 200) throw new Error(`HTTP ${status}: ${text.slice(0, 300)}`);
		const meta: {id?: string; prompt_tokens?: number; cached_tokens?: number} = JSON.parse(text).meta_info ?? {};
		return {id: meta.id ?? '', promptTokens: meta.prompt_tokens ?? -1, cachedTokens: meta.cached_tokens ?? -1};
	}

	close(): void {
		this.agent.destroy();
	}

	private ask(
		method: string,
		path: string,
		body: string | null,
		limitMs: number,
	): Promise<{status: number; text: string}> {
		return new Promise((resolve, reject) => {
			const headers =
				body === null ? {} : {'content-type': 'application/json', 'content-length': Buffer.byteLength(body)};
			const asked = request(
				{host: '127.0.0.1', port: this.server.port, method, path, headers, agent: this.agent},
				answer => {
					const pieces: Buffer[] = [];
					answer.on('data', piece => pieces.push(piece));
					answer.on('end', () =>
						resolve({status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString('utf8')}),
					);
					answer.on('error', fail);
				},
			);
			const limit = setTimeout(() => asked.destroy(new Error(`no answer in ${limitMs / 1_000} s`)), limitMs);
			asked.on('close', () => clearTimeout(limit));
			asked.on('error', fail);
			asked.end(body ?? undefined);
			function fail(error: NodeJS.ErrnoException): void {
				reject(AWAY.has(error.code ?? '') ? new ServerAway(error.message) : error);
			}
		});
	}
}
