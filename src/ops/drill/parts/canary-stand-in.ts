import {existsSync, mkdirSync, readdirSync, readFileSync, renameSync} from 'node:fs';
import {dirname} from 'node:path';
import {canaryIds} from '../../server/canary-tokens.ts';
import {readBareTensor} from '../../tensor/torch-reader.ts';
import {ask} from './http-helper.ts';
import type {PartBox} from './part-box.ts';

type Asked = {
	readonly port: number;
	readonly id: string;
	readonly dumps: string;
	readonly staging: string | null;
	readonly kind: string;
	readonly hiddenSize: number;
	readonly lists: readonly (readonly [which: 'short' | 'long', seed: number, tokens: number])[];
};

const PATCH_FILES = ['aux_0.pt', 'aux_1.pt', 'aux_2.pt', 'final.pt'];
const HOOK_FILES = ['aux_0.bin', 'aux_1.bin', 'aux_2.bin', 'final_pre.bin', 'final_post.bin'];

/**
 * The canary on a machine without a Python: the same two requests, and of the dumps only whether they are there and have as
 * many rows as were asked for. It says that this is less than the real one does.
 */
export async function runByCanaryStandIn(_box: PartBox, [text = '{}']: readonly string[]): Promise<number> {
	const asked: Asked = JSON.parse(text);
	const aside = `${asked.dumps}/.quarantine/canary-${asked.id}`;
	mkdirSync(aside, {recursive: true});
	for (const [which, , tokens] of asked.lists) {
		const rid = `relight-canary-${asked.id}-${which}`;
		if (asked.kind === 'counted') moveRequests(asked.dumps, aside, which);
		const body = {input_ids: canaryIds(which, tokens), sampling_params: {max_new_tokens: 1, temperature: 0}, rid};
		const url = `http://127.0.0.1:${asked.port}/generate`;
		const answer = await ask('POST', url, 60_000, JSON.stringify(body));
		if (!answer.text.startsWith('200\n')) return say(`canary of ${tokens} tokens: ${answer.text.slice(0, 300)}`, 1);
		const found = rowsOf(asked, rid);
		if (found !== tokens) return say(`canary of ${tokens} tokens: ${found ?? 'no'} rows of ${tokens}`, 1);
		if (asked.kind === 'counted') moveRequests(asked.dumps, aside, `${which}-done`);
		else moveNamed(asked, rid, aside);
	}
	return say(`canary: both dumps are there and have their rows; no more was looked at, without a Python here`, 0);
}

/** null: no whole dump. */
function rowsOf({dumps, staging, kind, hiddenSize}: Asked, rid: string): number | null {
	try {
		if (kind === 'staged') return JSON.parse(readFileSync(`${staging}/${rid}.json`, 'utf8')).T;
		if (kind === 'counted') {
			const folder = readdirSync(dumps).find(name => name.startsWith('req_') && existsSync(`${dumps}/${name}/done`));
			return sameRows(PATCH_FILES.map(name => readBareTensor(`${dumps}/${folder}/${name}`).shape[0] ?? 0));
		}
		if (!existsSync(`${dumps}/req_${rid}/meta.json`)) return null;
		return sameRows(HOOK_FILES.map(name => readFileSync(`${dumps}/req_${rid}/${name}`).length / (2 * hiddenSize)));
	} catch {
		return null;
	}
}

const sameRows = ([first = 0, ...others]: readonly number[]): number | null =>
	others.every(each => each === first) ? first : null;

function moveRequests(dumps: string, aside: string, label: string): void {
	for (const name of readdirSync(dumps))
		if (name.startsWith('req_')) renameSync(`${dumps}/${name}`, `${aside}/${label}-${name}`);
}

function moveNamed({dumps, staging, id}: Asked, rid: string, aside: string): void {
	if (existsSync(`${dumps}/req_${rid}`)) renameSync(`${dumps}/req_${rid}`, `${aside}/req_${rid}`);
	if (staging === null) return;
	const place = `${dirname(staging)}/.canary/${id}`;
	mkdirSync(place, {recursive: true});
	for (const end of ['.ready', '.json'])
		if (existsSync(`${staging}/${rid}${end}`)) renameSync(`${staging}/${rid}${end}`, `${place}/${rid}${end}`);
}

function say(text: string, code: number): number {
	process.stdout.write(`${text}\n`);
	return code;
}
