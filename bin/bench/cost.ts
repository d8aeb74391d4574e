import {spawnSync} from 'node:child_process';

const TURNS = 3;

export type Cost = {readonly wallMs: number; readonly cpuMs: number};

/** One turn: what it costs. */
export type Turn = () => Promise<Cost> | Cost;

/**
 * The least that each costs, in rounds: one turn each, right after the other, so that what else the machine does meets all
 * of them alike. Nothing is counted that a turn does not count itself.
 */
export async function inTurn<Turns extends {readonly [name: string]: Turn}>(
	rounds: number,
	turns: Turns,
): Promise<{readonly [Name in keyof Turns]: Cost}> {
	const costs = new Map<string, Cost>();
	const order = Object.entries(turns);
	for (let round = 0; round < rounds; round++) {
		for (const [name, turn] of order) {
			const one = await turn();
			costs.set(name, least([costs.get(name) ?? one, one]));
		}
		// Each comes behind each other: one may leave memory to the next that costs it more, or less.
		order.reverse();
	}
	return Object.fromEntries(costs) as {readonly [Name in keyof Turns]: Cost};
}

/** Takes the turns and says what came of them, per 100 MB of the `bytes` that each looks at. */
export async function compared<Turns extends {readonly [name: string]: Turn}>(
	rounds: number,
	bytes: number,
	turns: Turns,
	each = `least of ${rounds}`,
): Promise<{readonly [Name in keyof Turns]: Cost}> {
	const costs = await inTurn(rounds, turns);
	const per100 = (ms: number): string => (ms / (bytes / 1e8)).toFixed(2).padStart(8);
	for (const [name, {wallMs, cpuMs}] of Object.entries<Cost>(costs))
		say(`${name.padEnd(45)}${per100(wallMs)}${per100(cpuMs)}  ${each}`);
	return costs;
}

/** Of this process with its threads. */
export async function cost(run: () => Promise<unknown> | unknown): Promise<Cost> {
	const [wall, cpu] = [performance.now(), ownCpuMs()];
	await run();
	return {wallMs: performance.now() - wall, cpuMs: ownCpuMs() - cpu};
}

/** The best of some turns: the machine does other things, too. */
export async function best(
	run: () => Promise<unknown> | unknown,
	turns = TURNS,
	before: () => void = () => {},
): Promise<Cost> {
	const costs: Cost[] = [];
	for (let turn = 0; turn < turns; turn++) {
		before();
		costs.push(await cost(run));
	}
	return least(costs);
}

export const least = (costs: readonly Cost[]): Cost => ({
	wallMs: Math.min(...costs.map(each => each.wallMs)),
	cpuMs: Math.min(...costs.map(each => each.cpuMs)),
});

export function ownCpuMs(): number {
	const {user, system} = process.cpuUsage();
	return (user + system) / 1_000;
}

/** Of another program. CPU of a finished child is in the shell's `times`. */
export function costOf(argv: readonly string[]): Cost {
	const startedAt = performance.now();
	const {stdout, status} = spawnSync('bash', ['-c', '"$@"; code=$?; times; exit $code', 'bash', ...argv], {
		encoding: 'utf8',
	});
	if (status !== 0) throw new Error(`${argv[0]} ended with ${status}`);
	const [user = '', system = ''] = (stdout.trim().split('\n').at(-1) ?? '').split(' ');
	return {wallMs: performance.now() - startedAt, cpuMs: clockMs(user) + clockMs(system)};
}

/** The best of some turns of another program. */
export const bestOf = (argv: readonly string[], turns = TURNS): Cost =>
	least(Array.from({length: turns}, () => costOf(argv)));

/** `0m1.234s` */
function clockMs(text: string): number {
	const [, minutes = 0, seconds = 0] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
	return (Number(minutes) * 60 + Number(seconds)) * 1_000;
}

export const has = (name: string): boolean => spawnSync('which', [name]).status === 0;

export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** One line of a comparison: what, how much, and whether that is as good as it must be. */
export function judge(what: string, value: number, unit: string, must: string, passed: boolean): void {
	say(`${what.padEnd(58)}${value.toFixed(2).padStart(9)}${unit.padEnd(4)} ${passed ? 'pass' : 'FAIL'}  (${must})`);
}

export const atMost = (what: string, value: number, unit: string, limit: number, aim = ''): void =>
	judge(what, value, unit, `must be at most ${limit}${aim && `, aim ${aim}`}`, value <= limit);

export const atLeast = (what: string, value: number, unit: string, limit: number, aim = ''): void =>
	judge(what, value, unit, `must be at least ${limit}${aim && `, aim ${aim}`}`, value >= limit);
