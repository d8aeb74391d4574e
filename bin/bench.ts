import {adopt} from './bench/adopt.ts';
import {extract} from './bench/extract.ts';
import {monitor} from './bench/monitor.ts';
import {recover} from './bench/recover.ts';
import {scan} from './bench/scan.ts';
import {verify} from './bench/verify.ts';

const SUITES: Record<string, (argv: readonly string[]) => Promise<void>> = {
	monitor,
	scan,
	verify,
	extract,
	adopt,
	recover,
};

const [name = 'monitor', ...argv] = process.argv.slice(2);
const suite = SUITES[name];
if (suite) {
	await suite(argv);
	process.exit(0);
}
process.stderr.write(`no bench "${name}"; there are ${Object.keys(SUITES).join(', ')}\n`);
process.exit(64);
