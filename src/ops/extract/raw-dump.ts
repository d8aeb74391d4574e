import {createHash} from 'node:crypto';
import {existsSync, readFileSync} from 'node:fs';
import type {Wanted} from './dumps.ts';
import {lookAt, readRows} from './look.ts';
import type {StateName, States} from './states.ts';

/** The five files of a part; the source is relight.dump/1 of relight_hs.py. */
export const RAW_STATES = [
	'aux_0',
	'aux_1',
	'aux_2',
	'final_pre',
	'final_post',
] as const satisfies readonly StateName[];

type Meta = {
	readonly schema?: string;
	readonly rid?: string;
	readonly part?: number;
	readonly prefix_len?: number;
	readonly T?: number;
	readonly H?: number;
	readonly dtype?: string;
	readonly layers?: readonly number[];
	readonly ids_sha256?: string;
	readonly server?: unknown;
	readonly files?: Readonly<Record<string, {readonly bytes?: number; readonly crc32?: string}>>;
};

export type RawDump = {readonly states: States; readonly layers: string | null};

/**
 * A request's raw dump: part 0 in its directory, the k-th chunk of a chunked prefill below it in `part_k`, each whole from
 * its first appearance. Only the states of `names` are read. A number: so many rows are there yet. Throws what makes it no dump of this request.
 */
export function readRaw(path: string, wanted: Wanted, names: readonly StateName[] = RAW_STATES): RawDump | number {
	const metas: Meta[] = [];
	let rows = 0;
	while (rows < wanted.rows) {
		const place = partPath(path, metas.length);
		if (!existsSync(`${place}/meta.json`)) return rows;
		const meta: Meta = JSON.parse(smallText(`${place}/meta.json`));
		const wrong = wrongPart(meta, metas, rows, wanted);
		if (wrong !== null) throw new Error(metas.length > 0 ? `part ${metas.length} of the dump: ${wrong}` : wrong);
		metas.push(meta);
		rows += meta.T ?? 0;
	}
	if (rows > wanted.rows || existsSync(`${partPath(path, metas.length)}/meta.json`))
		throw new Error(`the dump has more rows than the ${wanted.rows} that belong`);
	const states = names.map(name => [
		name,
		joined(metas.map((meta, part) => readPart(path, part, name, meta, wanted.places?.get(name)))),
	]);
	return {states: Object.fromEntries(states), layers: metas[0]?.layers?.join(' ') ?? null};
}

const partPath = (path: string, part: number): string => (part === 0 ? path : `${path}/part_${part}`);

const joined = (parts: readonly Buffer[]): Buffer =>
	parts.length === 1 && parts[0] ? parts[0] : Buffer.concat([...parts]);

function wrongPart(
	meta: Meta,
	before: readonly Meta[],
	from: number,
	{rid, rows, ids, hiddenSize}: Wanted,
): string | null {
	if (meta.schema !== 'relight.dump/1') return `its schema is ${meta.schema}, not relight.dump/1`;
	if (meta.rid !== rid) return `the dump is of ${meta.rid}, not of ${rid}`;
	const {T: own = 0} = meta;
	if (!Number.isSafeInteger(own) || own < 1) return `it says ${meta.T} rows`;
	if (from + own > rows) return `the dump has ${from + own} rows where ${rows} belong`;
	if (meta.part !== before.length || meta.prefix_len !== from)
		return `it is part ${meta.part} from row ${meta.prefix_len}, not part ${before.length} from row ${from}`;
	if (meta.ids_sha256 !== idsHash(ids.subarray(from * 8, (from + own) * 8))) return 'the dump is of other token ids';
	if (meta.H !== hiddenSize || meta.dtype !== 'bfloat16') return `its states are ${meta.dtype} [T, ${meta.H}]`;
	const [first] = before;
	if (!first) return null;
	if (JSON.stringify(meta.server) !== JSON.stringify(first.server)) return 'another server made it';
	return String(meta.layers) === String(first.layers) ? null : `its layers are ${meta.layers}, not ${first.layers}`;
}

/** SHA-256 over the ids as little-endian int64, as the hook computes it. */
export const idsHash = (ids: Buffer): string => createHash('sha256').update(ids).digest('hex');

function readPart(path: string, part: number, name: StateName, {T = 0, H = 0, files}: Meta, place = 0): Buffer {
	const file = `${name}.bin`;
	const data = readRows(`${partPath(path, part)}/${file}`, place);
	const told = files?.[file];
	const wanted = T * H * 2;
	if (data.length !== wanted || told?.bytes !== wanted)
		throw new Error(`${file} has ${data.length} bytes, says ${told?.bytes}, and ${wanted} belong`);
	if (told.crc32 === undefined || Number.parseInt(told.crc32, 16) !== lookAt(data).crc)
		throw new Error(`checksum of ${file} is wrong`);
	return data;
}

/** Why the hook refused a request, from its `error.json`; null when it did not. */
export function refusalOf(path: string): string | null {
	if (!existsSync(`${path}/error.json`)) return null;
	const {reason = 'unknown', detail = {}}: {reason?: string; detail?: unknown} = JSON.parse(
		smallText(`${path}/error.json`),
	);
	return `${reason} ${JSON.stringify(detail)}`;
}

export const smallText = (path: string): string => readFileSync(path, 'utf8').slice(0, 64 * 1024);
