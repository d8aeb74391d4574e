import {flagValue} from '../server/protections.ts';
import type {ServerConfig} from '../target.ts';

/** What a launch's dumps look like: `counted` are the source patch's; the others the hook's, by what it is told. */
export type ServerDumps = {
	readonly kind: 'counted' | 'named' | 'nameless' | 'staged';
	/** Where finished containers appear; null: raw states in the dump directory. */
	readonly staging: string | null;
	/** Boundaries that the hook is told; null where the launch does not say. */
	readonly layers: readonly number[] | null;
};

/** From the flags of the launch alone. A `--forward-hooks` that is no list of specs is SGLang's to complain about. */
export function serverDumps({args}: Pick<ServerConfig, 'args'>): ServerDumps {
	const flag = flagValue(args, '--forward-hooks') ?? '';
	if (!flag.includes('relight_hs:')) return {kind: 'counted', staging: null, layers: null};
	const config = writerOf(flag);
	const staging = typeof config.staging === 'string' && config.staging !== '' ? config.staging : null;
	const layers = Array.isArray(config.layers) ? config.layers.map(Number) : null;
	return {kind: staging ? 'staged' : config.nameless === 'ids' ? 'nameless' : 'named', staging, layers};
}

function writerOf(flag: string): Readonly<Record<string, unknown>> {
	try {
		const specs: unknown = JSON.parse(flag);
		const writer = (Array.isArray(specs) ? specs : []).find(spec => Object(Object(spec).config).slot === 'write');
		return Object(Object(writer).config);
	} catch {
		return {};
	}
}
