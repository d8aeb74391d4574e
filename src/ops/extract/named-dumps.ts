import {existsSync, readFileSync} from 'node:fs';
import {setTimeout as sleep} from 'node:timers/promises';
import {crc32} from 'node:zlib';
import type {Dump, DumpPlace, DumpSource, Wanted} from './dumps.ts';

/** What of a dump goes into a sample. The list form of the legacy layout is pre-norm. */
const RAW_FILES = ['aux_0.bin', 'aux_1.bin', 'aux_2.bin', 'final_pre.bin'] as const;

type Meta = {
	readonly rid?: string;
	readonly T?: number;
	readonly layers?: readonly number[];
	readonly ids_sha256?: string;
	readonly files?: Readonly<Record<string, {readonly bytes?: number; readonly crc32?: string}>>;
};

/**
 * Dumps of the hook: `req_<rid>`, whole from its first appearance, raw bf16 rows with sums and the hash of the ids that
 * were really run; `error.json` instead when the hook refused. Source: relight.dump/1 of relight_hs.py.
 */
export const namedDumps = ({dir, limitMs}: DumpPlace): DumpSource => ({
	named: true,
	expect: wanted => async () => {
		const path = `${dir}/req_${wanted.rid}`;
		const until = Date.now() + limitMs;
		while (!existsSync(`${path}/meta.json`)) {
			if (existsSync(`${path}/error.json`)) throw new Error(`the hook refused: ${refusal(`${path}/error.json`)}`);
			if (Date.now() > until) throw new Error(`no dump ${path} appeared`);
			await sleep(5);
		}
		return readNamed(path, wanted);
	},
});

function readNamed(path: string, wanted: Wanted): Dump {
	const meta: Meta = JSON.parse(text(`${path}/meta.json`));
	if (meta.rid !== wanted.rid) throw new Error(`the dump is of ${meta.rid}, not of ${wanted.rid}`);
	if (meta.ids_sha256 !== wanted.idsHash) throw new Error('the dump is of other token ids');
	if (meta.T !== wanted.rows) throw new Error(`the dump has ${meta.T} rows where ${wanted.rows} belong`);
	const bytes = wanted.rows * wanted.hiddenSize * 2;
	const states = RAW_FILES.map(name => {
		const data = readFileSync(`${path}/${name}`);
		if (data.length !== bytes) throw new Error(`${name} has ${data.length} bytes where ${bytes} belong`);
		const sum = meta.files?.[name]?.crc32;
		if (sum !== undefined && Number.parseInt(sum, 16) !== crc32(data)) throw new Error(`checksum of ${name} is wrong`);
		return data;
	});
	return {path, states, layers: meta.layers?.join(' ') ?? null};
}

function refusal(path: string): string {
	const {reason = 'unknown', detail = {}}: {reason?: string; detail?: unknown} = JSON.parse(text(path));
	return `${reason} ${JSON.stringify(detail)}`;
}

const text = (path: string): string => readFileSync(path, 'utf8').slice(0, 64 * 1024);
