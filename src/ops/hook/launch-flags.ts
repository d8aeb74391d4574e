import {flagValue, protectionsOf} from '../server/protections.ts';
import type {Target} from '../target.ts';
import type {HookFacts, ModelShape} from './look.ts';
import {atLeast, SINCE} from './sglang-version.ts';

export type HookSpec = {
	readonly name: string;
	readonly target_modules: readonly string[];
	readonly hook_factory: 'relight_hs:hook';
	readonly config: Readonly<Record<string, unknown>>;
};

export type HookPlace = {
	/** Module names in front of `model.`: `language_model.` under a multimodal wrapper, else empty. */
	readonly prefix: string;
	/** Boundaries: the state that enters these layers. */
	readonly layers: readonly [number, number, number];
};

const KIMI: HookPlace = {prefix: 'language_model.', layers: [2, 30, 58]};

/** Where the five hooks belong in this model: early, middle, late, as EAGLE-3 trainers count them. */
export function hookPlace(model: ModelShape | null): HookPlace {
	if (!model?.layers || model.layers < 6) return KIMI;
	const wrapped = model.architecture === null || !/^Deepseek/.test(model.architecture);
	return {prefix: wrapped ? KIMI.prefix : '', layers: [2, Math.floor(model.layers / 2), model.layers - 3]};
}

/** Exact names, no patterns: a name that matches nothing is a line in the server's log, and relight reads that line. */
export function hookSpecs({prefix, layers}: HookPlace, writer: Readonly<Record<string, unknown>>): HookSpec[] {
	const spec = (slot: string, module: string, config: Readonly<Record<string, unknown>> = {}): HookSpec => ({
		name: `relight_${slot}`,
		target_modules: [`${prefix}${module}`],
		hook_factory: 'relight_hs:hook',
		config: {slot, ...config},
	});
	return [
		...layers.map((layer, at) => spec(`aux_${at}`, `model.layers.${layer}.input_layernorm`)),
		spec('final', 'model.norm'),
		spec('write', 'model', {layers, ...writer}),
	];
}

export type LaunchFlags = {
	readonly env: readonly (readonly [name: string, value: string])[];
	readonly args: readonly (readonly string[])[];
	/** What is already set, what was assumed, what cannot be had with this version. */
	readonly notes: readonly string[];
};

export type FlagOptions = {
	/** Directory of relight_hs.py on the host. */
	readonly directory: string;
	/** Final containers beside the output instead of raw states in the dump directory. */
	readonly staged: boolean;
};

/** What a launch has to pass so that the hook works and the states are whole. Only what server.env and args do not say. */
export function launchFlags({server, dump, extraction}: Target, facts: HookFacts, options: FlagOptions): LaunchFlags {
	const version = facts.sglang?.version ?? null;
	const since = (feature: string) => atLeast(version, feature) ?? true;
	const place = hookPlace(facts.model);
	const notes: string[] = [];
	if (version === null) notes.push('the version of SGLang is unknown: flags are those of the newest release');
	if (!facts.model)
		notes.push('the model has no readable config.json: module names are those of Kimi-K2.5 (61 layers)');
	if (!since(SINCE.forwardHooks))
		notes.push(
			`SGLang ${version} has no --forward-hooks (${SINCE.forwardHooks} is the first): only the source patch works`,
		);
	if (!since(SINCE.ridsInBatch))
		notes.push(`SGLang ${version} does not tell a hook which request it is: dumps are named by the hash of their ids`);
	const writer = {
		rid_prefix: 'relight-',
		...(!since(SINCE.ridsInBatch) && {nameless: 'ids'}),
		...(options.staged && extraction && {staging: `${extraction.output}/.staging`, layout: extraction.layout}),
	};
	const wanted: (readonly string[])[] = [
		['--forward-hooks', JSON.stringify(hookSpecs(place, writer))],
		...protectionsOf({extraction}, facts.sglang).map(({words}) => words),
	];
	const set = server?.args ?? [];
	const args = wanted.filter(words => {
		const there = flagValue(set, words[0] ?? '');
		if (there === null) return true;
		if (words[1] === undefined || there === words[1]) notes.push(`${words[0]} is already in server.args`);
		else notes.push(`${words[0]} is in server.args with another value (${there.slice(0, 60)}): it must be replaced`);
		return words[1] !== undefined && there !== words[1];
	});
	const paths = server?.env.PYTHONPATH?.split(':').filter(Boolean) ?? [];
	const variables: (readonly [string, string])[] = [
		['PYTHONPATH', [options.directory, ...paths.filter(each => each !== options.directory)].join(':')],
		...(dump ? [['RELIGHT_HS_DUMP_DIR', dump.dir] as const] : []),
		// Each probe of /health would run the model.
		...(since(SINCE.healthWithoutGeneration) ? [['SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION', 'false'] as const] : []),
	];
	if (!dump) notes.push('no dump directory is configured (dump.dir): RELIGHT_HS_DUMP_DIR has to name one');
	return {env: variables.filter(([name, value]) => server?.env[name] !== value), args, notes};
}
