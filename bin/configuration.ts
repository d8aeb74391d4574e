import {LOCAL_TARGET, readConfig, showTrouble} from '../src/ops/config/config.ts';
import type {Target} from '../src/ops/target.ts';
import {readByChild} from '../src/ops/transports/ssh-settings.ts';

export type Configuration = {readonly file: string | null; readonly targets: readonly Target[]};

/** Reads through a child: the working directory may be the very mount that hangs. Throws UsageError with every line. */
export async function loadConfiguration(places: readonly string[], explicit: boolean): Promise<Configuration> {
	for (const file of places) {
		const text = await readByChild(['cat', file], 2_000);
		if (text === null) {
			if (explicit) throw new UsageError(`${file}: cannot be read; expected a configuration (see README, Config)`);
			continue;
		}
		const result = readConfig(text.toString(), file);
		if (!result.ok) throw new UsageError(result.troubles.map(showTrouble).join('\n'));
		return {file, targets: result.targets};
	}
	return {file: null, targets: [LOCAL_TARGET]};
}

export function pickTarget({file, targets}: Configuration, name: string | undefined): Target {
	const found = name ? targets.find(target => target.name === name) : (targets[0] ?? LOCAL_TARGET);
	if (found) return found;
	const known = targets.map(target => target.name).join(', ');
	throw new UsageError(
		file
			? `${file} has no host ${name}; it has ${known}`
			: `no configuration names a host ${name}; without one only "local" is known`,
	);
}

/** Wrong use: words for stderr, exit 64. */
export class UsageError extends Error {}
