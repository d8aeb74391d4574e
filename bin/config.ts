import {loadConfiguration} from './configuration.ts';
import {configPlaces, operatorOf} from './login.ts';
import type {Options} from './relight.ts';

/** What the configuration comes to, after defaults; or every line that is wrong. */
export async function config(options: Options): Promise<number> {
	const operator = operatorOf(process.env);
	const places = configPlaces(process.env, operator, options.config, process.cwd());
	const {file, targets} = await loadConfiguration(places, options.config !== undefined);
	if (!file)
		process.stderr.write(
			`no configuration (looked at ${places.join(', ')}): this machine is watched, operations say what they miss\n`,
		);
	process.stdout.write(`${JSON.stringify({schema: 'relight.config/1', file, hosts: targets}, null, 2)}\n`);
	return 0;
}
