import {runByCanaryStandIn} from './canary-stand-in.ts';
import {runHttpHelper} from './http-helper.ts';
import {runByLookStandIn} from './look-stand-in.ts';
import {machinePython, runByMachine} from './machine-python.ts';
import type {PartBox} from './part-box.ts';

/** What stands for a script of the console where no Python is at hand, by the script's first line. */
const STAND_INS: readonly (readonly [mark: RegExp, run: (box: PartBox, argv: readonly string[]) => Promise<number>])[] =
	[
		[/^# relight-canary 1$/, runByCanaryStandIn],
		[/^# relight-hook-look 1$/, runByLookStandIn],
	];

/** `python3 - ARGS…`: a script on standard input, by the machine's Python where there is one. */
export async function runScript(box: () => PartBox, argv: readonly string[]): Promise<number> {
	const script = await readStdin();
	const [title = ''] = script.split('\n');
	if (title === '# relight-http 1') return runHttpHelper(argv);
	const python = machinePython(box());
	if (python) return runByMachine(python, box(), script, argv);
	const standIn = STAND_INS.find(([mark]) => mark.test(title));
	if (standIn) return standIn[1](box(), argv);
	process.stderr.write('a drill box has no interpreter for this script\n');
	return 1;
}

async function readStdin(): Promise<string> {
	const pieces: Buffer[] = [];
	for await (const piece of process.stdin) pieces.push(piece);
	return Buffer.concat(pieces).toString('utf8');
}
