import type {ProcessRow} from './process-rows.ts';

/**
 * Children under their parent, siblings in the given order. Rows that matter (holders, stuck) lift their whole family:
 * a parent counts as much as the most urgent row below it, so the wrapper of eight workers stands first, with their sum.
 */
export function treeOrder(
	rows: readonly ProcessRow[],
	order: (a: ProcessRow, b: ProcessRow) => number,
): readonly ProcessRow[] {
	const byPid = new Map(rows.map(row => [row.pid, row]));
	const below = new Map<number, ProcessRow[]>();
	const roots: ProcessRow[] = [];
	for (const row of rows) {
		// Pid 1 adopts everybody: what it adopted is a family of its own.
		const parent =
			row.parentPid !== null && row.parentPid > 1 && row.parentPid !== row.pid ? byPid.get(row.parentPid) : undefined;
		const siblings = parent ? below.get(parent.pid) : roots;
		if (siblings) siblings.push(row);
		else if (parent) below.set(parent.pid, [row]);
	}
	const lifted = lift(rows, below);
	const out: ProcessRow[] = [];
	const placed = new Set<number>();
	const walk = (siblings: readonly ProcessRow[], depth: number): void => {
		const sorted = siblings
			.filter(row => !placed.has(row.pid))
			.map(row => lifted.get(row.pid) ?? row)
			.toSorted(order);
		for (const [index, family] of sorted.entries()) {
			const own = byPid.get(family.pid) ?? family;
			placed.add(own.pid);
			const {gpuBytesBelow} = family;
			const lastChild = index === sorted.length - 1;
			out.push(
				depth === 0 && own.gpuBytesBelow === gpuBytesBelow ? own : placedRow(own, {gpuBytesBelow, depth, lastChild}),
			);
			if (depth < DEEPEST) walk(below.get(family.pid) ?? [], depth + 1);
		}
	};
	walk(roots, 0);
	// Parents in a ring, or too deep: never left out.
	for (const row of rows) if (!placed.has(row.pid)) walk([row], 0);
	return out;
}

type Place = Pick<ProcessRow, 'gpuBytesBelow' | 'depth' | 'lastChild'>;

/** A row that did not change and stands where it stood is the same object again. */
const placedRows = new WeakMap<ProcessRow, ProcessRow>();

function placedRow(own: ProcessRow, place: Place): ProcessRow {
	const before = placedRows.get(own);
	if (
		before?.gpuBytesBelow === place.gpuBytesBelow &&
		before.depth === place.depth &&
		before.lastChild === place.lastChild
	)
		return before;
	const row = {...own, ...place};
	placedRows.set(own, row);
	return row;
}

/** A loop of parents cannot come from one honest table, but a forged one must not hang the console. */
const DEEPEST = 32;

/** For each parent, the row that its family is sorted by. */
function lift(
	rows: readonly ProcessRow[],
	below: ReadonlyMap<number, readonly ProcessRow[]>,
): ReadonlyMap<number, ProcessRow> {
	const done = new Map<number, ProcessRow>();
	const family = (row: ProcessRow, depth: number): ProcessRow => {
		const known = done.get(row.pid);
		if (known) return known;
		const children = below.get(row.pid);
		if (!children || depth > DEEPEST) return row;
		let {holder, stuck, gpuBytesBelow, cpuFraction} = row;
		for (const child of children) {
			const one = family(child, depth + 1);
			holder ||= one.holder;
			stuck ||= one.stuck;
			if (one.gpuBytesBelow !== null) gpuBytesBelow = (gpuBytesBelow ?? 0) + one.gpuBytesBelow;
			if (one.cpuFraction !== null) cpuFraction = Math.max(cpuFraction ?? 0, one.cpuFraction);
		}
		const lifted = {...row, holder, stuck, gpuBytesBelow, cpuFraction};
		done.set(row.pid, lifted);
		return lifted;
	};
	for (const row of rows) family(row, 0);
	return done;
}
