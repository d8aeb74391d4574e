import {parseArgs} from 'node:util';
import {UsageError} from './configuration.ts';
import {runExtract} from './extract.ts';

const OPTIONS = {config: {type: 'string'}, adopt: {type: 'boolean'}, 'break-lock': {type: 'boolean'}} as const;

/** `relight extract` as one file of its own, for a host that has Node and no relight. */
async function main(): Promise<number> {
	const {values} = parseArgs({args: process.argv.slice(2), options: OPTIONS});
	return runExtract(values);
}

main().then(
	code => process.exit(code),
	error => {
		process.stderr.write(`${error instanceof UsageError ? error.message : (error?.stack ?? error)}\n`);
		process.exit(error instanceof UsageError ? 64 : 2);
	},
);
