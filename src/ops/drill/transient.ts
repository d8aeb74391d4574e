import {closeSync, existsSync, openSync} from 'node:fs';
import {type BoxPaths, boxPath} from './paths.ts';
import type {Population} from './population.ts';
import type {UnitDefinition} from './unit.ts';

/** A transient unit from the words of `systemd-run`, or why there is none. */
export function parseRun(
	words: readonly string[],
	paths: BoxPaths,
	population: Population,
): UnitDefinition | {readonly refused: string} {
	const properties = new Map<string, string>();
	const env: Record<string, string> = {};
	let name = '';
	let description = '';
	let collect = false;
	let at = 0;
	const operand = (option: string): string =>
		option.includes('=') ? option.slice(option.indexOf('=') + 1) : (words[++at] ?? '');
	for (; at < words.length; at++) {
		const word = words[at] ?? '';
		if (word === '--') {
			at++;
			break;
		}
		if (!word.startsWith('-')) break;
		const option = word.split('=')[0];
		if (option === '--unit' || option === '-u') name = operand(word);
		else if (option === '--description') description = operand(word);
		else if (option === '--working-directory') properties.set('WorkingDirectory', operand(word));
		else if (option === '--property' || option === '-p') assign(properties, operand(word));
		else if (option === '--setenv' || option === '-E') {
			const [key = '', ...value] = operand(word).split('=');
			env[key] = value.join('=');
		} else if (option === '--slice' || option === '--service-type' || option === '--uid') operand(word);
		else if (word === '--collect' || word === '-G') collect = true;
		else if (!['--no-block', '--quiet', '-q', '--no-ask-password'].includes(word)) {
			return {refused: `systemd-run: unrecognized option '${word}'`};
		}
	}
	const command = words.slice(at);
	const program = command[0];
	if (program === undefined) return {refused: 'Command line to execute required.'};
	const file = find(program, boxPath(paths));
	if (file === null) return {refused: `Failed to find executable ${program}: No such file or directory`};
	if (name === '') name = `run-r${Math.random().toString(16).slice(2, 14)}`;
	if (!name.endsWith('.service')) name += '.service';
	return {
		name,
		description: description || command.join(' '),
		fragment: null,
		wantedBy: null,
		restart:
			properties.get('Restart') === 'always'
				? 'always'
				: properties.get('Restart') === 'on-failure'
					? 'on-failure'
					: 'no',
		restartMs: 100,
		stopLimitMs: seconds(properties.get('TimeoutStopSec')) ?? 90_000,
		execStart: command,
		collect,
		fatalChildren: false,
		launch(unit) {
			const invocation = unit.invocation.replaceAll('-', '');
			const environment = {...env, INVOCATION_ID: invocation};
			const args = command.slice(1).flatMap(word => expand(word, environment));
			const out = openOutput(properties.get('StandardOutput'));
			const err = openOutput(properties.get('StandardError') ?? properties.get('StandardOutput'));
			try {
				return [
					population.spawn({
						file,
						args,
						env: environment,
						cwd: properties.get('WorkingDirectory') ?? '/',
						stdio: ['ignore', out ?? 'ignore', err ?? 'ignore'],
						unit: unit.name,
						disguise: {cgroup: unit.cgroup},
					}),
				];
			} finally {
				if (out !== null) closeSync(out);
				if (err !== null) closeSync(err);
			}
		},
	};
}

function assign(properties: Map<string, string>, text: string): void {
	const at = text.indexOf('=');
	properties.set(text.slice(0, at), text.slice(at + 1));
}

function find(program: string, path: string): string | null {
	const candidates = program.includes('/') ? [program] : path.split(':').map(directory => `${directory}/${program}`);
	return candidates.find(candidate => existsSync(candidate)) ?? null;
}

/** The manager expands `$NAME` and `${NAME}` in arguments even of transient units; `$$` is one dollar. */
function expand(word: string, env: Readonly<Record<string, string>>): string[] {
	const bare = /^\$([A-Za-z_]\w*)$/.exec(word);
	if (bare) return (env[bare[1] ?? ''] ?? '').split(/\s+/).filter(Boolean);
	return [word.replaceAll(/\$(?:\$|\{(\w+)\})/g, (_, name?: string) => (name === undefined ? '$' : (env[name] ?? '')))];
}

function openOutput(target: string | undefined): number | null {
	const [, mode, path] = /^(append|file|truncate):(.+)$/.exec(target ?? '') ?? [];
	if (path === undefined) return null;
	return openSync(path, mode === 'append' ? 'a' : 'w');
}

function seconds(text: string | undefined): number | null {
	const [, amount, unit] = /^(\d+)(s|min|ms)?$/.exec(text ?? '') ?? [];
	return amount === undefined ? null : Number(amount) * (unit === 'min' ? 60_000 : unit === 'ms' ? 1 : 1_000);
}
