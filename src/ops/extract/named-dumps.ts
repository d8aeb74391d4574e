import type {Dump, DumpPlace, DumpSource, Wanted} from './dumps.ts';
import type {FinalNorm} from './final-norm.ts';
import {neededStates} from './forms.ts';
import {layoutOf} from './layouts.ts';
import {RAW_STATES, readRaw, refusalOf} from './raw-dump.ts';
import type {StateName} from './states.ts';

/**
 * Raw dumps of the hook, `req_<rid>`: rows with sums and the hash of the ids that were really run; `error.json` when the
 * hook refused, which then counts whatever else is there.
 */
export const namedDumps = (place: DumpPlace, norm: FinalNorm | null = null): DumpSource => ({
	named: true,
	states: RAW_STATES.length,
	staging: null,
	close: () => place.watch.close(),
	expect: wanted => () => findNamed(place, norm, wanted),
});

async function findNamed({dir, limitMs, watch}: DumpPlace, norm: FinalNorm | null, wanted: Wanted): Promise<Dump> {
	const path = `${dir}/req_${wanted.rid}`;
	const until = Date.now() + limitMs;
	const pause = watch.pauses();
	for (;;) {
		const refusal = refusalOf(path);
		if (refusal !== null) throw new Error(`the hook refused: ${refusal}`);
		const found = readRaw(path, wanted, wantedStates(norm));
		if (typeof found !== 'number') return {paths: [path], ...found};
		if (Date.now() > until)
			throw new Error(
				found === 0 ? `no dump ${path} appeared` : `the dump has ${found} rows where ${wanted.rows} belong`,
			);
		await pause();
	}
}

/** Those that the tree stores; all, as long as it is not known which final that is. */
const wantedStates = (norm: FinalNorm | null): readonly StateName[] =>
	norm === null || norm.open ? RAW_STATES : neededStates(layoutOf(norm.extraction).form);
