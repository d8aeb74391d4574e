import {extract} from '../src/ops/extract/extract.ts';
import {systemIo} from '../src/ops/extract/extract-io.ts';
import {preferNativeCrc} from '../src/ops/tensor/crc.ts';
import {loadConfiguration, pickTarget, UsageError} from './configuration.ts';
import {configPlaces, operatorOf} from './login.ts';
import type {Options} from './relight.ts';

type ExtractOptions = Pick<Options, 'config' | 'adopt' | 'break-lock'>;

/** The extractor on the GPU box: everything it needs comes from the configuration. */
export async function runExtract(options: ExtractOptions): Promise<number> {
	const places = configPlaces(process.env, operatorOf(process.env), options.config, process.cwd());
	const {extraction, server, dump} = pickTarget(await loadConfiguration(places, true), undefined);
	if (!extraction || !server || !dump)
		throw new UsageError(`${places[0]}: extraction, server and dump are all needed to extract`);
	await preferNativeCrc();
	const {'break-lock': breakStaleLock = false, adopt = false} = options;
	return extract({extraction, server, dump}, systemIo({tool: await ownName(), breakStaleLock, adopt}));
}

/** `relight 0.1.0` */
export async function ownName(): Promise<string> {
	const {default: own} = await import('../package.json', {with: {type: 'json'}});
	return `relight ${own.version}`;
}
