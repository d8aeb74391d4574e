import {join} from 'node:path';
import {journalDays, readJournal} from '../src/state/journal.ts';
import {recoveryReport} from '../src/ui/report.ts';
import {loadConfiguration, pickTarget, UsageError} from './configuration.ts';
import {configPlaces, operatorOf, stateDirectory} from './login.ts';
import type {Options} from './relight.ts';

/** The newest day on which something was done, or the one that is named: Markdown on stdout. Nothing is asked of the host. */
export async function report(name: string | undefined, options: Options): Promise<number> {
	const operator = operatorOf(process.env);
	const places = configPlaces(process.env, operator, options.config, process.cwd());
	const target = pickTarget(await loadConfiguration(places, options.config !== undefined), name);
	const directory = join(stateDirectory(process.env, operator), 'journal');
	const days = await journalDays(directory, target.name);
	if (options.day !== undefined && !days.includes(options.day))
		throw new UsageError(`relight report: no journal of ${options.day}; there are ${days.join(', ') || 'none'}`);
	for (const day of options.day === undefined ? days.toReversed() : [options.day]) {
		const entries = await readJournal(directory, target.name, day);
		if (options.day === undefined && !entries.some(entry => entry.plan)) continue;
		process.stdout.write(recoveryReport(target.name, entries));
		return 0;
	}
	process.stderr.write(`nothing was done on ${target.name} yet: there is no journal of an operation in ${directory}\n`);
	return 3;
}
