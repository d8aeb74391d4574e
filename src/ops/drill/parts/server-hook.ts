import {createHash} from 'node:crypto';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import type {HookSpec} from '../../hook/launch-flags.ts';
import {HOOK_FILE} from '../../hook/own.ts';
import {atLeast, SINCE} from '../../hook/sglang-version.ts';
import {BOOT_ID} from '../build-host.ts';
import {startTicksOf} from '../leash.ts';
import {hiddenStates, LAYERS} from '../states.ts';
import {HookWriter, type WriterConfig} from './hook-writer.ts';
import {machinePython} from './machine-python.ts';
import {normed, normWeight} from './norm.ts';
import type {PartBox} from './part-box.ts';
import type {ServerLog} from './server-log.ts';
import {TorchRank} from './torch-rank.ts';

/** One request of a pass. */
export type Asked = {readonly rid: string; readonly ids: readonly number[]};

/** What dumps the states of each pass as relight_hs does. */
export type HookSide = {
	/** Which of the two it is, in words. */
	readonly says: string;
	pass(requests: readonly Asked[]): Promise<void>;
	end(): void;
};

const MODEL_LAYERS = 61;

/**
 * What `--forward-hooks` brings into the server: relight_hs itself in a Python with a torch, else a writer that leaves the
 * same bytes. null: no hook of ours is asked for. Throws, in Python's words, when the module cannot be imported.
 */
export async function hookSide(
	box: PartBox,
	flag: string | undefined,
	log: ServerLog,
	ranks: number,
): Promise<HookSide | null> {
	if (!flag?.includes('relight_hs:')) return null;
	const specs: readonly HookSpec[] = JSON.parse(flag);
	const module = moduleFile();
	const writer = specs.find(({config}) => config.slot === 'write');
	const config = writer ? writerConfig(writer.config, box) : null;
	const python = machinePython(box);
	/** Before that release a batch does not carry the names of its requests. */
	const rids = atLeast(box.sglang, SINCE.ridsInBatch) ?? true;
	const registered = (name: string, place: string | null): void => {
		for (let rank = 0; rank < ranks; rank++)
			if (place) log.line(`Registered forward hook '${name}' on ${place}`, rank);
			else log.line(`No modules matched hook spec '${name}', not registering any hook`, rank);
	};
	const told = (says: string): string => {
		log.line(`drill: hidden states are dumped by ${says}`, 0);
		writeFileSync(box.paths.hookWriter, says);
		return says;
	};
	if (python?.torch && config) {
		const norm = normWeight(box).toString('base64');
		const rank = new TorchRank(python, box, {specs, norm, layers: MODEL_LAYERS, boundaries: config.layers, rids});
		const {torch, hooks} = await rank.registered;
		for (const [name, place] of hooks) registered(name, place);
		return {
			says: told(`relight_hs.py in torch ${torch} (${python.path})`),
			pass: requests => rank.pass(requests.map(each => ({...each, stream: streamOf(each, box)}))),
			end: () => rank.end(),
		};
	}
	for (const {name, target_modules} of specs) for (const place of target_modules) registered(name, known(place));
	if (!config) return null;
	const made = new HookWriter(config, {
		server: {...identity(process.pid), boot_id: BOOT_ID, parent: identity(process.ppid)},
		moduleSha256: module.sha256,
		versions: {python: '3.11.2', torch: 'none', sglang: box.sglang},
		now: Date.now,
	});
	const weight = normWeight(box);
	return {
		says: told('a TypeScript writer of the same bytes: no Python with a torch is at hand'),
		async pass(requests) {
			made.pass(
				requests.map(each => {
					const [aux_0, aux_1, aux_2, final_pre] = streamOf(each, box) as [Buffer, Buffer, Buffer, Buffer];
					return {
						ids: each.ids,
						rid: rids ? each.rid : null,
						states: {aux_0, aux_1, aux_2, final_pre, final_post: normed(final_pre, weight)},
					};
				}),
			);
		},
		end: () => {},
	};
}

const streamOf = ({ids}: Asked, {hiddenSize}: PartBox): Buffer[] =>
	Array.from({length: LAYERS}, (_, layer) => hiddenStates(ids, layer, hiddenSize));

/** As `importlib.import_module` finds it, by the environment of this launch. */
function moduleFile(): {path: string; sha256: string} {
	const path = (process.env.PYTHONPATH ?? '')
		.split(':')
		.filter(Boolean)
		.map(each => join(each, HOOK_FILE))
		.find(existsSync);
	if (path === undefined) throw new Error("ModuleNotFoundError: No module named 'relight_hs'");
	return {path, sha256: createHash('sha256').update(readFileSync(path)).digest('hex')};
}

function writerConfig(config: Readonly<Record<string, unknown>>, {hiddenSize}: PartBox): WriterConfig {
	const word = (value: unknown, or: string): string => (typeof value === 'string' ? value : or);
	return {
		dumpDir: word(config.dump_dir, process.env.RELIGHT_HS_DUMP_DIR ?? ''),
		layers: Array.isArray(config.layers) ? config.layers.map(Number) : [],
		ridPrefix: word(config.rid_prefix, 'relight-'),
		nameless: config.nameless === 'ids',
		staging: typeof config.staging === 'string' ? config.staging : null,
		layout: word(config.layout, 'legacy') as WriterConfig['layout'],
		final: config.final === 'pre' ? 'pre' : 'post',
		hiddenSize,
	};
}

/** A name that the model has, or null. */
function known(place: string): string | null {
	const layer = /^language_model\.model\.layers\.(\d+)\.input_layernorm$/.exec(place)?.[1];
	if (layer !== undefined) return Number(layer) < MODEL_LAYERS ? place : null;
	return ['language_model.model', 'language_model.model.norm'].includes(place) ? place : null;
}

function identity(pid: number): {pid: number; start_ticks: number | null} {
	try {
		return {pid, start_ticks: startTicksOf(readFileSync(`/proc/${pid}/stat`, 'latin1'))};
	} catch {
		return {pid, start_ticks: null};
	}
}
