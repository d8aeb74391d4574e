import type {ExtractionConfig} from '../target.ts';
import type {Inventory, InventoryGroup} from './extraction.ts';

/** How sample files are called in a layout, and whether they lie in groups `rows_A-B` or all in one directory. */
export function sampleNames(layout: ExtractionConfig['layout']): {pattern: RegExp; glob: string; flat: boolean} {
	if (layout === 'speculators') return {pattern: /^hs_(\d+)\.safetensors$/, glob: 'hs_*.safetensors', flat: true};
	return {pattern: /^data_(\d+)\.(?:pt|ckpt)$/, glob: 'data_*.[pc]*t', flat: false};
}

/** The indices that a group directory is for; null when its name is none of ours. A flat tree is one group, `.`. */
export function rangeOf(name: string, config: ExtractionConfig): {from: number; to: number} | null {
	if (name === '.') return {from: 0, to: config.records ?? Number.MAX_SAFE_INTEGER};
	const match = /^rows_(\d+)-(\d+)$/.exec(name);
	return match ? {from: Number(match[1]), to: Number(match[2])} : null;
}

/** Indices without a file below the highest one that has a file, as ranges with both ends in. */
export function holesOf(groups: readonly InventoryGroup[]): readonly (readonly [number, number])[] {
	const holes: (readonly [number, number])[] = [];
	let next = 0;
	for (const group of groups) {
		for (const index of [...group.files.keys()].sort((a, b) => a - b)) {
			if (index > next) holes.push([next, index - 1]);
			next = Math.max(next, index + 1);
		}
	}
	return holes;
}

const MOST_GROUPS = 3;

/** Groups that changed although the host's clock did not show it (a copied-back time, a file server's own clock). */
export const groupsToList = (inventory: Inventory | null): readonly string[] =>
	(inventory?.groups ?? [])
		.filter(group => group.modifiedAt === 0)
		.slice(0, MOST_GROUPS)
		.map(group => group.name);

const MOST_FILES = 400;
/** A script stays small: files are named by runs of indices. */
const MOST_RUNS = 3;
/** Names that do not exist cost nothing: a run goes on over so many missing or checked ones. */
const BRIDGED = 8;
/** A file that was written while it was listed looks cut off: a fresh suspect is looked at again. */
const FRESH_MS = 600_000;

/** The next files to be checked, newest group and index first, as runs of indices: `n FROM TO GROUP/PREFIX SUFFIX`. */
export function filesToCheck(inventory: Inventory | null, nowMs: number): readonly string[] {
	const groups = [...(inventory?.groups ?? [])].sort((a, b) => (b.newestAt ?? 0) - (a.newestAt ?? 0));
	const runs: string[] = [];
	let files = 0;
	for (const group of groups) {
		const candidates = candidatesOf(group, nowMs);
		for (const run of runsOf(candidates, group, MOST_FILES - files)) {
			if (runs.length === MOST_RUNS || files >= MOST_FILES) return runs;
			files += run.to - run.from + 1;
			runs.push(`n ${run.from} ${run.to} ${group.name}/${run.prefix} ${run.suffix}`);
		}
	}
	return runs;
}

function candidatesOf(group: InventoryGroup, nowMs: number): number[] {
	const fresh = group.newestAt !== null && nowMs - group.newestAt < FRESH_MS;
	if (group.unchecked === 0 && !fresh) return [];
	const due = [...group.files].filter(
		([, file]) => file.whole === null || (file.whole === false && file.bytes > 0 && nowMs - file.modifiedAt < FRESH_MS),
	);
	return due.map(([index]) => index).sort((a, b) => b - a);
}

type Run = {from: number; to: number; readonly prefix: string; readonly suffix: string};

/** `data_` and `.pt` are what stands around the index in the name. */
function runsOf(descending: readonly number[], group: InventoryGroup, most: number): Run[] {
	const runs: Run[] = [];
	for (const index of descending) {
		const [prefix = '', , suffix = ''] = (group.files.get(index)?.name ?? '').split(/(\d+)/);
		const open = runs.at(-1);
		const joins =
			open?.suffix === suffix && open.prefix === prefix && open.from - index <= BRIDGED && open.to - index < most;
		if (joins) open.from = index;
		else runs.push({from: index, to: index, prefix, suffix});
	}
	return runs;
}
