import {parseArgs} from 'node:util';
import {UsageError} from './configuration.ts';
import {ownName, runExtract} from './extract.ts';

const OPTIONS = {
	config: {type: 'string'},
	adopt: {type: 'boolean'},
	'break-lock': {type: 'boolean'},
	version: {type: 'boolean'},
} as const;

/** `relight extract` as one file of its own, for a host that has no relight: a module for its Node, or an executable. */
async function main(): Promise<number> {
	const {version, ...values} = parseArgs({args: process.argv.slice(2), options: OPTIONS}).values;
	if (!version) return runExtract(values);
	process.stdout.write(`${await ownName()}\n`);
	return 0;
}

main().then(
	code => process.exit(code),
	error => {
		process.stderr.write(`${error instanceof UsageError ? error.message : (error?.stack ?? error)}\n`);
		process.exit(error instanceof UsageError ? 64 : 2);
	},
);
