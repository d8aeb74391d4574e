import type {ImportedPackage} from '../hook/look.ts';
import {atLeast, SINCE} from '../hook/sglang-version.ts';
import type {Target} from '../target.ts';

/** SGLang's own limit of tokens in one prefill batch. */
const DEFAULT_PREFILL_TOKENS = 16_384;

/** Value of a flag in an argument list, '' for a bare one, null when it is not there. `--flag=value` counts too. */
export function flagValue(args: readonly string[], flag: string): string | null {
	for (const [at, word] of args.entries()) {
		if (word.startsWith(`${flag}=`)) return word.slice(flag.length + 1);
		if (word !== flag) continue;
		const next = args[at + 1] ?? '';
		return next.startsWith('--') ? '' : next;
	}
	return null;
}

/** Words of a launch without which states are lost or wrong, and what would go wrong. */
export type Protection = {readonly words: readonly string[]; readonly why: string};

type PackageFacts = Pick<ImportedPackage, 'version' | 'flags'> | null;

/** What a server that dumps whole states has to be told, by its version. An unknown version is taken for the newest. */
export function protectionsOf({extraction}: Pick<Target, 'extraction'>, found: PackageFacts): readonly Protection[] {
	const since = (feature: string) => atLeast(found?.version ?? null, feature) ?? true;
	const longest = extraction?.maxTokens ?? 0;
	const all: (Protection | false)[] = [
		{words: ['--chunked-prefill-size', '-1'], why: 'a chunk has the rows of its part alone'},
		longest > DEFAULT_PREFILL_TOKENS && {
			words: ['--max-prefill-tokens', String(longest)],
			why: 'the longest sample would not fit into one prefill',
		},
		{words: ['--disable-radix-cache'], why: 'tokens from the cache have no rows'},
		{words: ['--disable-overlap-schedule'], why: 'passes then end in the order of their requests'},
		{words: ['--disable-cuda-graph'], why: 'what dumps is seen on the eager path alone'},
		since(SINCE.piecewiseGraphs) &&
			!since(SINCE.oneGraphSwitch) && {
				words: ['--disable-piecewise-cuda-graph'],
				why: 'what dumps is seen on the eager path alone',
			},
		since(SINCE.fusionCanBeOff) && {
			words: ['--enforce-disable-flashinfer-allreduce-fusion'],
			why: 'fused all-reduces leave partial sums in the states of short samples',
		},
	];
	return all.filter(each => each !== false);
}

/** The operator's own line as it will be sent, and each change to it in words. */
export type GuardedLine = {readonly args: readonly string[]; readonly changes: readonly string[]};

/** Old names that the newest SGLang still takes or no longer does, and what says the same. */
const RENAMED: readonly (readonly [old: string, now: readonly string[]])[] = [
	['--disable-cuda-graph', ['--cuda-graph-backend-decode', 'disabled', '--cuda-graph-backend-prefill', 'disabled']],
	['--model', ['--model-path']],
	['--tp', ['--tp-size']],
];

export const isRenamed = (flag: string): boolean => RENAMED.some(([old]) => old === flag);

/** Protections that are missing are added, names that this SGLang no longer has are replaced. Nothing set is overruled. */
export function guardedLine(
	args: readonly string[],
	target: Pick<Target, 'extraction'>,
	found: PackageFacts,
): GuardedLine {
	const changes: string[] = [];
	const known = (flag: string): boolean => found?.flags?.includes(flag) ?? true;
	const renamed = args.flatMap(word => {
		const now = RENAMED.find(([old]) => old === word && !known(old))?.[1];
		if (!now || !known(now[0] ?? '')) return [word];
		changes.push(`${word} -> ${now.join(' ')}: this SGLang has the new name alone`);
		return now;
	});
	const added = protectionsOf(target, found).filter(({words: [flag = '', value], why}) => {
		const there = flagValue(renamed, flag);
		if (there !== null && value !== undefined && there !== value)
			changes.push(`${flag} ${there} stays as it is set, though ${why}`);
		return there === null && known(flag);
	});
	for (const {words, why} of added) changes.push(`+ ${words.join(' ')}: ${why}`);
	return {args: [...renamed, ...added.flatMap(({words}) => words)], changes};
}

/** Flags that this SGLang does not have: the launch would end with "unrecognized arguments". Empty when that is not known. */
export function unknownFlags(args: readonly string[], found: PackageFacts): readonly string[] {
	const flags = found?.flags;
	if (!flags) return [];
	const asked = args.filter(word => word.startsWith('--')).map(word => word.split('=')[0] ?? word);
	// A flag may be cut short as long as it stays the only one.
	return asked.filter(flag => !flags.some(each => each.startsWith(flag)));
}
