import {createHash} from 'node:crypto';
import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {crc32} from 'node:zlib';

export const WIDTH = 16;
export const STATES = ['aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post'] as const;
export type StateName = (typeof STATES)[number];

/** What a request's dump says and holds; a test changes what it wants to be wrong. */
export type RawDump = {
	meta: Record<string, unknown> & {T: number; files: Record<string, {bytes: number; crc32: string}>};
	states: Record<StateName, Buffer>;
	/** Later chunks of the same prompt. */
	parts: RawDump[];
	error: object | null;
	/** What meta.json's sums are made of; null: the states as they are written. */
	summed: Record<StateName, Buffer> | null;
};

/** Status 0: the connection is cut. */
export type Answer = {status: number; meta: Record<string, unknown>};
export type Request = {readonly rid: string; readonly ids: readonly number[]; readonly which: 'short' | 'long'};

/** bf16 of a number. */
const bf16 = (value: number): number => {
	const bits = new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
	return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
};

export const packed = (values: readonly number[]): Buffer => Buffer.from(Uint16Array.from(values, bf16).buffer);

export const WEIGHT = Array.from({length: WIDTH}, (_, at) => 0.5 + at / 16);

/** Some rows per layer, none like another; the last two on both sides of an RMS norm. */
export function statesOf(ids: readonly number[]): Record<StateName, Buffer> {
	const rows = (layer: number) =>
		ids.flatMap((id, row) =>
			Array.from({length: WIDTH}, (_, column) => Math.sin(id * 0.7 + row + layer * 31 + column * 3) * 8),
		);
	const pre = rows(3);
	const post = pre.map((value, at) => {
		const from = Math.floor(at / WIDTH) * WIDTH;
		const square = pre.slice(from, from + WIDTH).reduce((sum, each) => sum + each * each, 0) / WIDTH;
		return (value / Math.sqrt(square)) * (WEIGHT[at % WIDTH] ?? 1);
	});
	const [a, b, c] = [rows(0), rows(1), rows(2)];
	return {aux_0: packed(a), aux_1: packed(b), aux_2: packed(c), final_pre: packed(pre), final_post: packed(post)};
}

export const idsHash = (ids: readonly number[]): string =>
	createHash('sha256')
		.update(Buffer.from(BigInt64Array.from(ids, BigInt).buffer))
		.digest('hex');

/** A dump that nothing is wrong with, of a whole prompt or of one chunk of it. */
export function goodDump({rid, ids}: Pick<Request, 'rid' | 'ids'>, from = 0, to = ids.length): RawDump {
	const own = ids.slice(from, to);
	const about = {schema: 'relight.dump/1', rid, H: WIDTH, layers: [2, 30, 58], prefix_len: from};
	const meta = {...about, T: own.length, ids_sha256: idsHash(own), files: {}};
	return {meta, states: statesOf(own), parts: [], error: null, summed: null};
}

/** As relight_hs.py leaves it: states first, what is said of them last, the whole under its name by one rename. */
export function writeRaw(dumpDir: string, name: string, dump: RawDump): void {
	writeFolder(`${dumpDir}/req_${name}`, dump);
}

function writeFolder(folder: string, dump: RawDump): void {
	mkdirSync(folder, {recursive: true});
	if (dump.error) {
		writeFileSync(`${folder}/error.json`, JSON.stringify(dump.error));
		return;
	}
	const files: RawDump['meta']['files'] = {};
	for (const state of STATES) {
		writeFileSync(`${folder}/${state}.bin`, dump.states[state]);
		const summed = (dump.summed ?? dump.states)[state];
		files[`${state}.bin`] = {bytes: summed.length, crc32: crc32(summed).toString(16).padStart(8, '0')};
	}
	for (const [at, part] of dump.parts.entries()) writeFolder(`${folder}/part_${at + 1}`, part);
	writeFileSync(`${folder}/meta.json`, JSON.stringify({...dump.meta, files: {...files, ...dump.meta.files}}));
}

/** A checkpoint with one shard, of which only the last norm matters. */
export function writeModel(directory: string): void {
	mkdirSync(directory, {recursive: true});
	const key = 'language_model.model.norm.weight';
	const other = {dtype: 'BF16', shape: [4], data_offsets: [0, 8]};
	const header = Buffer.from(
		JSON.stringify({other, [key]: {dtype: 'BF16', shape: [WIDTH], data_offsets: [8, 8 + WIDTH * 2]}}),
	);
	const length = Buffer.alloc(8);
	length.writeBigUInt64LE(BigInt(header.length));
	writeFileSync(`${directory}/last.safetensors`, Buffer.concat([length, header, Buffer.alloc(8), packed(WEIGHT)]));
	writeFileSync(`${directory}/model.safetensors.index.json`, JSON.stringify({weight_map: {[key]: 'last.safetensors'}}));
}

/** A model server on loopback that leaves dumps as a test wants them. */
export async function modelServer(dump: (request: Request) => void) {
	const root = mkdtempSync(join(tmpdir(), 'relight-canary-'));
	const requests: Request[] = [];
	const answer: {change: (answer: Answer, request: Request) => void} = {change: () => {}};
	const server = createServer(async (incoming, response) => {
		const pieces: Buffer[] = [];
		for await (const piece of incoming) pieces.push(piece);
		const {rid, input_ids: ids} = JSON.parse(Buffer.concat(pieces).toString());
		const request: Request = {rid, ids, which: rid.endsWith('short') ? 'short' : 'long'};
		requests.push(request);
		const answered: Answer = {status: 200, meta: {id: rid, prompt_tokens: ids.length, cached_tokens: 0}};
		answer.change(answered, request);
		if (answered.status === 0) return response.socket?.destroy();
		if (answered.status === 200) dump(request);
		response.writeHead(answered.status, {'content-type': 'application/json'});
		response.end(JSON.stringify(answered.status === 200 ? {meta_info: answered.meta} : {error: 'is longer than'}));
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()));
	const address = server.address();
	return {
		root,
		requests,
		answer,
		port: typeof address === 'object' && address ? address.port : 0,
		async close() {
			await new Promise(resolve => server.close(resolve));
			rmSync(root, {recursive: true, force: true});
		},
	};
}
