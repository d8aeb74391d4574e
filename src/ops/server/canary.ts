import {createHash} from 'node:crypto';
import {show} from '../command.ts';
import type {ServerDumps} from '../hook/server-dumps.ts';
import type {ServerConfig} from '../target.ts';
import program from './canary.py';
import {canaryTokens} from './canary-tokens.ts';

export type Canary = {
	readonly server: Pick<ServerConfig, 'python' | 'port' | 'model'>;
	/** What this launch's dumps look like and where they appear. */
	readonly dumps: ServerDumps;
	readonly dumpDir: string;
	readonly hiddenSize: number;
	readonly maxTokens: number;
	/** Launch id: names the requests, and the place to which their dumps are moved. */
	readonly id: string;
};

/** A first prefill may compile kernels; a dump is there before the answer, or not at all. */
const ANSWER_S = 180;
const DUMP_S = 10;
const LIMIT_S = 2 * (ANSWER_S + DUMP_S) + 20;
export const CANARY_LIMIT_MS = (LIMIT_S + 10) * 1_000;

/**
 * Two real requests that must leave complete and right dumps, judged on the host by the server's Python: rows, bytes, sums,
 * ids, layers, every value finite, the norm. What it prints last is for people; exit 1 when a dump is wrong or none came.
 * The dumps go to `.quarantine/canary-<id>` in the dump directory, staged files to `.canary/<id>` in the output. `script`
 * reads `program` on standard input and names it by its sum.
 */
export function canary({server, dumps, dumpDir, hiddenSize, maxTokens, id}: Canary): {script: string; program: string} {
	const {short, long} = canaryTokens(maxTokens);
	const ask = {
		port: server.port,
		id,
		dumps: dumpDir,
		staging: dumps.staging,
		kind: dumps.kind,
		layers: dumps.layers,
		hiddenSize,
		model: server.model,
		lists: [
			['short', 1, short],
			['long', 2, long],
		],
		answerSeconds: ANSWER_S,
		dumpSeconds: DUMP_S,
	};
	const words = ['timeout', '-k', '1', String(LIMIT_S), server.python, '-', JSON.stringify(ask)];
	const sum = createHash('sha256').update(program).digest('hex');
	const about = `# standard input: canary.py, sha256 ${sum}: two times POST /generate, then reads both dumps`;
	return {script: `${about}\ncd / && exec ${show(words)}`, program};
}
