import type {Target} from '../src/ops/target.ts';
import {terminalAsker} from './ask-on-terminal.ts';
import {type Composition, compose} from './compose.ts';
import {loadConfiguration, pickTarget} from './configuration.ts';
import {configPlaces, operatorOf} from './login.ts';
import type {Options} from './relight.ts';

/** The configured host, connected, for a command without a screen that only looks. Says so when that takes a while. */
export async function openToLook(
	name: string | undefined,
	options: Pick<Options, 'config'>,
): Promise<Composition & {readonly target: Target; readonly seen: () => void}> {
	const operator = operatorOf(process.env);
	const places = configPlaces(process.env, operator, options.config, process.cwd());
	const target = pickTarget(await loadConfiguration(places, options.config !== undefined), name);
	const asker = terminalAsker();
	const composition = await compose({target, operator, asker, mode: 'live', readOnly: true, journalDirectory: null});
	await composition.engine.host.settle();
	const slow = setTimeout(() => process.stderr.write(`looking at ${target.name} …\n`), 1_000);
	return {...composition, target, seen: () => clearTimeout(slow)};
}
