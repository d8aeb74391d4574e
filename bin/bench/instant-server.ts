import {createHash} from 'node:crypto';
import {copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {createServer, type Server} from 'node:http';
import type {AddressInfo} from 'node:net';
import {join} from 'node:path';
import {crc32} from 'node:zlib';
import {int64} from '../../src/ops/extract/dataset.ts';
import {RAW_STATES} from '../../src/ops/extract/raw-dump.ts';
import {finiteNoise} from './samples.ts';

const BYTES_PER_VALUE = 2;

export type Size = {readonly tokens: number; readonly hiddenSize: number};

export type InstantServer = {
	readonly port: number;
	/** When the first request for a new sample came, by performance.now(). */
	readonly firstAskedAt: () => number | null;
	close(): void;
};

/** States of the hook's raw dump, ready to be renamed: finite, no two alike, no pages of zeros. */
export function prepareDumps(dumps: string, samples: number, {tokens, hiddenSize}: Size): void {
	mkdirSync(dumps, {recursive: true});
	for (let copy = 0; copy < samples; copy++) {
		const place = join(dumps, `prepared_${copy}`);
		mkdirSync(place);
		for (const [layer, name] of RAW_STATES.entries()) {
			if (copy > 0) {
				copyFileSync(join(dumps, 'prepared_0', `${name}.bin`), join(place, `${name}.bin`));
				continue;
			}
			writeFileSync(join(place, `${name}.bin`), finiteNoise(tokens * hiddenSize, layer));
		}
	}
}

/** A model server that has thought already: each sample gets a dump that lies prepared, by a rename; checks get a cut copy. */
export async function instantServer(dumps: string, {hiddenSize}: Size): Promise<InstantServer> {
	const prepared = readdirSync(dumps).filter(name => name.startsWith('prepared_'));
	const first = join(dumps, prepared[0] ?? '');
	const sums = sumsOf(first);
	const states = RAW_STATES.map(name => [name, readFileSync(join(first, `${name}.bin`))] as const);
	let firstAskedAt: number | null = null;
	const cutCopy = (rid: string, tokens: number): string => {
		const place = join(dumps, `cut_${rid}`);
		mkdirSync(place);
		for (const [name, data] of states)
			writeFileSync(join(place, `${name}.bin`), data.subarray(0, tokens * hiddenSize * BYTES_PER_VALUE));
		return `cut_${rid}`;
	};
	const generate = (text: string): object => {
		const {rid, input_ids: ids}: {rid: string; input_ids: number[]} = JSON.parse(text);
		const check = rid.startsWith('relight-check-');
		if (!check) firstAskedAt ??= performance.now();
		const name = check ? cutCopy(rid, ids.length) : (prepared.pop() ?? 'none is left');
		giveDump(dumps, name, rid, ids, hiddenSize, check ? undefined : sums);
		return {meta_info: {id: rid, prompt_tokens: ids.length, completion_tokens: 1, cached_tokens: 0}};
	};
	const about = {model_path: '/models/bench', version: '1', forward_hooks: 'relight_hs:make'};
	const server: Server = createServer((request, response) => {
		const pieces: Buffer[] = [];
		request.on('data', piece => pieces.push(piece));
		request.on('end', () => {
			const body = request.url === '/generate' ? generate(Buffer.concat(pieces).toString()) : about;
			response.writeHead(200, {'content-type': 'application/json'});
			response.end(JSON.stringify(body));
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	return {
		port: (server.address() as AddressInfo).port,
		firstAskedAt: () => firstAskedAt,
		close() {
			server.closeAllConnections();
			server.close();
			rmSync(dumps, {recursive: true, force: true});
		},
	};
}

/** Makes states that lie prepared the dump of a request, by a rename. */
export function giveDump(
	dumps: string,
	name: string,
	rid: string,
	ids: readonly number[],
	hiddenSize: number,
	sums = sumsOf(join(dumps, name)),
): void {
	const meta = {
		...{schema: 'relight.dump/1', rid, T: ids.length, prefix_len: 0, part: 0, server: {pid: 1}, H: hiddenSize},
		...{layers: [2, 30, 58], dtype: 'bfloat16', files: sums},
		ids_sha256: createHash('sha256').update(int64(ids)).digest('hex'),
	};
	writeFileSync(join(dumps, name, 'meta.json'), JSON.stringify(meta));
	renameSync(join(dumps, name), join(dumps, `req_${rid}`));
}

const sumsOf = (place: string) =>
	Object.fromEntries(
		RAW_STATES.map(name => {
			const data = readFileSync(join(place, `${name}.bin`));
			return [`${name}.bin`, {bytes: data.length, crc32: crc32(data).toString(16).padStart(8, '0')}];
		}),
	);
