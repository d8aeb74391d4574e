import {parseArgs} from 'node:util';
import {setFlagsFromString} from 'node:v8';
import {UsageError} from './configuration.ts';

const HELP = `relight: brings a dead GPU box back to work and then watches it

  relight [HOST]                       the console (this machine without a configuration)
  relight drill [SCENARIO]             the console on an embedded box in ruins; nothing real is touched
    --list names the scenarios, what is ruined in each and how it must end; random --seed N combines up to three
  relight status [HOST] [--json]       one look at everything
  relight preflight [HOST] [--json]    what must hold before a long run, with evidence
  relight run OPERATION [HOST]         one operation without the console: --dry-run shows, --yes does
  relight extract --config FILE        the resumable extractor (on the GPU box)
    --adopt        take over a tree without a manifest, after a look at every file
    --break-lock   take over the lock of a writer that is gone
  relight verify PATH…                 whether trees or files of stored states are whole
  relight hook VERB [HOST]             the dump of hidden states: status, install, print-flags
  relight report [HOST]                what was done and what came of it, from the journal alone (Markdown)
  relight config                       what the configuration says, or what is wrong with it
  relight keys                         the keys of the console

  --config FILE    instead of ./relight.yaml and $XDG_CONFIG_HOME/relight/config.yaml
  --read-only      the console starts unable to act (W leaves)
  --unattended     drill: the whole recovery without a screen      --seed N   drill: another box
  --box            drill: keep a box standing for other commands, and say how to reach it
  --on ARGUMENT    run: what to act on (a unit name)               --json     machine-readable, on stdout alone
  --override CHECK run: go on although this preflight check fails (more than once for several); it is written down
  --break-lock     run --yes: first breaks the action lock of an operator who is gone
  --level LEVEL    verify: stat, structure (if not said), crc, values   --hidden N   verify: width of a state
  --dataset FILE   verify: the samples, for token counts and ids        --norm FILE  verify: weight of the last norm
  --quarantine     verify: moves suspects into PATH/quarantine, with a note
  --to DIRECTORY   hook: where on the host relight_hs.py lies, instead of dump.dir
  --staged         hook print-flags: final files beside the output, instead of raw states in dump.dir
  --day YYYY-MM-DD report: another day than the newest on which something was done
  --help  --version

Exit: 0 healthy, done · 1 warning · 2 critical, failed · 3 unknown, unreachable · 4 refused · 64 usage · 130 interrupted
`;

const OPTIONS = {
	config: {type: 'string'},
	'read-only': {type: 'boolean'},
	unattended: {type: 'boolean'},
	seed: {type: 'string'},
	on: {type: 'string'},
	json: {type: 'boolean'},
	box: {type: 'boolean'},
	list: {type: 'boolean'},
	level: {type: 'string'},
	dataset: {type: 'string'},
	hidden: {type: 'string'},
	norm: {type: 'string'},
	quarantine: {type: 'boolean'},
	day: {type: 'string'},
	override: {type: 'string', multiple: true},
	to: {type: 'string'},
	staged: {type: 'boolean'},
	'dry-run': {type: 'boolean'},
	yes: {type: 'boolean'},
	adopt: {type: 'boolean'},
	'break-lock': {type: 'boolean'},
	help: {type: 'boolean', short: 'h'},
	version: {type: 'boolean'},
} as const;

export type Options = ReturnType<typeof read>['values'];

const read = (argv: readonly string[]) => parseArgs({args: [...argv], options: OPTIONS, allowPositionals: true});

async function main(argv: readonly string[]): Promise<number> {
	if (argv[0] === 'drill-part') return (await import('../src/ops/drill/parts.ts')).runPart(argv.slice(1));
	const {values, positionals} = read(argv);
	if (values.help) return print(HELP);
	if (values.version)
		return print(`relight ${(await import('../package.json', {with: {type: 'json'}})).default.version}\n`);
	const [command, ...rest] = positionals;
	switch (command) {
		case 'drill':
			tuneForOneFrameASecond();
			return (await import('./drill.ts')).drill(rest, values);
		case 'status':
			return (await import('./status.ts')).status(rest[0], values);
		case 'preflight':
			return (await import('./preflight.ts')).preflightCommand(rest[0], values);
		case 'run':
			return (await import('./run.ts')).run(rest, values);
		case 'extract':
			return (await import('./extract.ts')).runExtract(values);
		case 'verify':
			return (await import('./verify.ts')).runVerify(rest, values);
		case 'hook':
			return (await import('./hook.ts')).hook(rest, values);
		case 'report':
			return (await import('./report.ts')).report(rest[0], values);
		case 'config':
			return (await import('./config.ts')).config(values);
		case 'keys':
			return print((await import('../src/ui/keymap/key-list.ts')).keyList());
		default:
			if (rest.length > 0) throw new UsageError(`relight: no command "${command}"; see relight --help`);
			tuneForOneFrameASecond();
			return (await import('./console.ts')).openConsole(command, values);
	}
}

/**
 * A program that works 15 ms a second never gets back what its optimising compilers spend: with the usual budgets their
 * threads took a quarter of all CPU, for ever. Loops that are really hot (5,000 processes) still get there. The names are
 * those of V8 11 (Node 20) and of V8 12 and later (Node 22, 24); one that the engine does not know would be an error on screen.
 */
function tuneForOneFrameASecond(): void {
	const flags =
		Number.parseInt(process.versions.v8, 10) < 12
			? ['--interrupt-budget=5000000']
			: ['--invocation-count-for-maglev=30000', '--invocation-count-for-turbofan=220000'];
	for (const flag of flags) setFlagsFromString(flag);
}

function print(text: string): number {
	process.stdout.write(text);
	return 0;
}

/** The one place that ends the process. Stuck work is not waited for. */
main(process.argv.slice(2)).then(
	code => process.exit(code),
	error => {
		const usage = error instanceof UsageError || error?.code?.startsWith?.('ERR_PARSE_ARGS');
		const words = error?.code?.startsWith?.('ERR_PARSE_ARGS')
			? `relight: ${error.message.split('. ')[0]}; see relight --help`
			: error?.message;
		process.stderr.write(`${usage ? words : (error?.stack ?? error)}\n`);
		process.exit(usage ? 64 : 2);
	},
);
