import {Agent, request} from 'node:http';
import type {ServerConfig} from '../target.ts';
import type {ServerIdentity} from './manifest.ts';

export type Generated = {readonly id: string; readonly promptTokens: number; readonly cachedTokens: number};

/**
 * Nobody answers, or not yet: wait and ask again. `blame`: the request was out when the server went, so that the sample
 * may be why.
 */
export class ServerAway extends Error {
	constructor(
		message: string,
		readonly blame: boolean,
		readonly hung = false,
	) {
		super(message);
	}
}
/** The server refuses this request; repeating it changes nothing. */
export class Refused extends Error {}
/** The run was told to stop, and did not wait for this answer any longer. */
export class Abandoned extends Error {}

const AWAY = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH']);
const CUT = new Set(['ECONNRESET', 'EPIPE']);
const LOOK_LIMIT_MS = 10_000;

class NoAnswer extends Error {}

type Answer = {readonly status: number; readonly text: string};

/** What the extractor asks of the model server, on this host's loopback. */
export class Client {
	/** A connection each: on a kept one, a cut could not tell a dead server from an idle close. */
	private readonly agent = new Agent();

	constructor(
		private readonly server: Pick<ServerConfig, 'port'>,
		/** A prefill of one long sample on a busy server. */
		private readonly answerLimitMs = 300_000,
	) {}

	/**
	 * Whether the server is up. Asks nothing of the model: a health probe would run it, and dump. After a hang the question
	 * goes through the scheduler, which the static answers of a hung server do not.
	 */
	async up(afterHang: boolean): Promise<boolean> {
		const paths = ['/model_info', '/get_model_info'];
		return (await this.first(afterHang ? ['/server_info', '/get_server_info', ...paths] : paths)) !== null;
	}

	/** Who the server says it is, as far as it says, and what its hook is told to make, if it has the hook. */
	async identity(): Promise<ServerIdentity & DumpsTold> {
		const server = (await this.first(['/server_info', '/get_server_info'])) ?? {};
		const model = (await this.first(['/model_info', '/get_model_info'])) ?? {};
		const word = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
		return {
			modelPath: word(server.model_path) ?? word(model.model_path),
			version: word(server.version),
			...dumpsOf(JSON.stringify(server.forward_hooks ?? '')),
		};
	}

	/** One prefill of these ids and one new token. Rejects with ServerAway, Refused, Abandoned, or an Error worth a retry. */
	async generate(rid: string, inputIds: readonly number[], abandon: AbortSignal): Promise<Generated> {
		const body = {input_ids: inputIds, sampling_params: {max_new_tokens: 1, temperature: 0}, rid, stream: false};
		let answer: Answer;
		try {
			answer = await this.ask('POST', '/generate', {body, limitMs: this.answerLimitMs, signal: abandon});
		} catch (error) {
			if (!(error instanceof NoAnswer) && !(error instanceof Abandoned)) throw error;
			await this.ask('POST', '/abort_request', {body: {rid}, limitMs: 1_000}).catch(() => {});
			if (error instanceof Abandoned) throw error;
			throw new ServerAway(`the server hangs: ${error.message}`, true, true);
		}
		const {status, text} = answer;
		if (status === 503) throw new ServerAway('the server is starting or draining', false);
		if (status === 400) throw new Refused(`HTTP 400: ${text.slice(0, 300)}`);
		if (status !== 200) throw new Error(`HTTP ${status}: ${text.slice(0, 300)}`);
		const meta: {id?: string; prompt_tokens?: number; cached_tokens?: number} = JSON.parse(text).meta_info ?? {};
		return {id: meta.id ?? '', promptTokens: meta.prompt_tokens ?? -1, cachedTokens: meta.cached_tokens ?? -1};
	}

	close(): void {
		this.agent.destroy();
	}

	/** The first of these that exists, as an object; null when the server does not answer. */
	private async first(paths: readonly string[]): Promise<Record<string, unknown> | null> {
		try {
			for (const path of paths) {
				const {status, text} = await this.ask('GET', path, {limitMs: Math.min(LOOK_LIMIT_MS, this.answerLimitMs)});
				if (status === 200) return Object(JSON.parse(text || '{}'));
				if (status !== 404) return null;
			}
		} catch {}
		return null;
	}

	private ask(
		method: string,
		path: string,
		{body, limitMs, signal}: {body?: object; limitMs: number; signal?: AbortSignal},
	): Promise<Answer> {
		return new Promise((resolve, reject) => {
			const text = body === undefined ? undefined : JSON.stringify(body);
			const headers =
				text === undefined ? {} : {'content-type': 'application/json', 'content-length': Buffer.byteLength(text)};
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
			const abandoned = (): void => void asked.destroy(new Abandoned('stopped as asked'));
			if (signal?.aborted) abandoned();
			signal?.addEventListener('abort', abandoned, {once: true});
			const limit = setTimeout(() => asked.destroy(new NoAnswer(`no answer in ${limitMs / 1_000} s`)), limitMs);
			asked.on('close', () => {
				clearTimeout(limit);
				signal?.removeEventListener('abort', abandoned);
			});
			asked.on('error', fail);
			asked.end(text);
			function fail(error: NodeJS.ErrnoException): void {
				const code = error.code ?? '';
				if (AWAY.has(code)) reject(new ServerAway(error.message, false));
				else if (CUT.has(code)) reject(new ServerAway(error.message, true));
				else reject(error);
			}
		});
	}
}

/** `staging`: where finished files appear. */
export type DumpsTold = {
	readonly dumps: 'counted' | 'named' | 'staged' | 'nameless';
	readonly staging: string | null;
};

/** From the flag as the server tells it: a list, or the text of one, whose quotes are then escaped. */
function dumpsOf(hooks: string): DumpsTold {
	if (!hooks.includes('relight_hs')) return {dumps: 'counted', staging: null};
	const [, staging] = /\\?"staging\\?":\s*\\?"([^"\\]+)/.exec(hooks) ?? [];
	if (staging !== undefined) return {dumps: 'staged', staging};
	return {dumps: hooks.includes('nameless') ? 'nameless' : 'named', staging: null};
}
